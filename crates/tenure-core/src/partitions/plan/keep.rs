//! The first two steps: everything stays where it is if it may, and what exceeds a limit is shed.

use super::draft::Draft;
use crate::partitions::member::Readiness;

impl Draft<'_> {
    /// Leaves every partition with its owner, if that one may have it; the others are orphans.
    pub fn keep(&mut self) {
        for list in 0..self.lists.len() {
            let (tasks, kind) = (&self.lists[list], self.groups.kind_of[list]);
            if tasks.paused {
                continue;
            }
            let number = u32::try_from(list).unwrap_or(u32::MAX);
            let (before, range) = (self.current.range(number), self.next.range(number));
            let stays: Vec<bool> = (0..)
                .zip(self.members)
                .map(|(index, member)| {
                    member.readiness != Readiness::Draining && self.groups.kinds[kind].fits[index]
                })
                .collect();
            for (offset, place) in range.enumerate() {
                let owner = (offset < before.len()).then(|| self.current.owners()[before.start + offset]);
                let owner = owner.filter(|owner| stays.get(*owner as usize).is_some_and(|stays| *stays));
                let pin = if tasks.pins.is_empty() { None } else { self.pinned(place) };
                match (pin, owner) {
                    (Some(pin), _) => self.give(place, kind, pin, true),
                    (None, Some(owner)) => {
                        self.next.put(place, owner);
                        let fixed = self.members[owner as usize].readiness != Readiness::Open;
                        self.tally(kind, owner, fixed);
                    }
                    (None, None) => self.orphans[list].push(place),
                }
            }
        }
    }

    /// Takes away what exceeds a member's limit, the heaviest first.
    pub fn shed(&mut self) {
        let mut kinds: Vec<usize> = (0..self.groups.kinds.len()).collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(self.groups.kinds[*kind].weight));
        for member in 0..u32::try_from(self.members.len()).unwrap_or(u32::MAX) {
            for kind in &kinds {
                while !self.has_room(member, 0) && self.count(member, *kind) > 0 {
                    self.orphan(member, *kind);
                }
            }
        }
    }

    fn orphan(&mut self, member: u32, kind: usize) {
        if let Some(place) = self.take(member, kind, None) {
            self.next.put(place, u32::MAX);
            let list = self.next.at(place).list;
            self.orphans[list as usize].push(place);
        }
    }
}
