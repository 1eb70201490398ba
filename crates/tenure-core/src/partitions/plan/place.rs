//! The third step: what has no owner goes to whoever is least full. First the heaviest, and of those what
//! the fewest may have: the others fit in more easily afterwards.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::draft::Draft;
use super::level::Level;
use crate::partitions::member::Readiness;

/// The members of one class, by how full they would be with one partition more.
type Heap = BinaryHeap<Reverse<(Level, u32)>>;

impl Draft<'_> {
    /// Gives every orphan to somebody, if anybody may have it.
    pub fn place(&mut self) {
        let mut lists: Vec<usize> =
            (0..self.lists.len()).filter(|list| !self.orphans[*list].is_empty()).collect();
        lists.sort_by_key(|list| {
            let kind = &self.groups.kinds[self.groups.kind_of[*list]];
            (Reverse(kind.weight), kind.open)
        });
        let mut heaps: Vec<Heap> = Vec::new();
        let mut weight = 0;
        for list in lists {
            let kind = self.groups.kind_of[list];
            if weight != self.groups.kinds[kind].weight {
                weight = self.groups.kinds[kind].weight;
                heaps = self.heaps(weight);
            }
            let mut orphans = std::mem::take(&mut self.orphans[list]);
            orphans.sort_unstable();
            for place in orphans {
                let to = self.least_full(&heaps, kind, true).or_else(|| self.least_full(&heaps, kind, false));
                if let Some(class) = to {
                    self.settle(&mut heaps[class], place, kind, weight);
                } else if self.make_room(place, kind) {
                    heaps = self.heaps(weight);
                } else {
                    self.orphans[list].push(place);
                }
            }
        }
    }

    fn heaps(&self, weight: u64) -> Vec<Heap> {
        let entry = |member: &u32| Reverse((self.if_given(*member, weight), *member));
        let roomy = |member: &&u32| self.has_room(**member, weight);
        self.groups.classes.iter().map(|class| class.open.iter().filter(roomy).map(entry).collect()).collect()
    }

    /// The class with the least full member that may have one of this kind.
    fn least_full(&self, heaps: &[Heap], kind: usize, zones: bool) -> Option<usize> {
        let classes = self.groups.kinds[kind].classes.iter().copied();
        classes
            .filter(|class| !zones || self.zone_allows(kind, self.groups.classes[*class].zone, None))
            .filter_map(|class| heaps[class].peek().map(|Reverse(top)| (*top, class)))
            .min()
            .map(|(_, class)| class)
    }

    fn settle(&mut self, heap: &mut Heap, place: usize, kind: usize, weight: u64) {
        let Some(mut top) = heap.peek_mut() else { return };
        let Reverse((_, member)) = *top;
        self.give(place, kind, member, false);
        if self.has_room(member, weight) {
            *top = Reverse((self.if_given(member, weight), member));
        } else {
            std::collections::binary_heap::PeekMut::pop(top);
        }
    }

    /// Whoever shall give everything away keeps what nobody else can take.
    pub fn stay(&mut self) {
        for list in 0..self.lists.len() {
            let kind = self.groups.kind_of[list];
            for place in std::mem::take(&mut self.orphans[list]) {
                let fits = |former: &u32| self.groups.kinds[kind].fits[*former as usize];
                let drains = |former: &u32| self.members[*former as usize].readiness == Readiness::Draining;
                if let Some(former) = self.former(place).filter(fits).filter(drains) {
                    self.give(place, kind, former, true);
                }
            }
        }
    }
}
