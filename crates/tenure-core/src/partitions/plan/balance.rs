//! The last step: partitions move one by one from the fullest to the least full, until no move helps.
//!
//! Where the fullest may not give to the least full directly, a chain does: it gives one to a member in
//! between, which gives another one of the same weight on. Chains are sought over classes, of
//! which there are few.

use std::collections::{BTreeSet, VecDeque};

use super::draft::Draft;
use super::level::Level;

/// One partition of a kind goes from one member to another.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: u32,
    kind: usize,
    to: u32,
}

/// The open members in order, kept up to date.
struct Order {
    /// The weight that the second order counts in.
    unit: u64,
    /// Differences below that are left alone.
    slack: u64,
    /// By what speaks for taking `unit` from them.
    fullest: BTreeSet<(Level, u32)>,
    /// By class: by what speaks against giving them `unit` more.
    roomiest: Vec<BTreeSet<(Level, u32)>>,
}

impl Order {
    fn fullest_below(&self, done: Option<(Level, u32)>) -> Option<(Level, u32)> {
        match done {
            Some(done) => self.fullest.range(..done).next_back().copied(),
            None => self.fullest.last().copied(),
        }
    }
}

/// How a class was reached: by which kind, and from which class and member.
type Came = Option<(usize, Option<usize>, Option<u32>)>;

impl Draft<'_> {
    /// Moves partitions as long as that makes the members more evenly full. Says whether any was moved.
    pub fn balance(&mut self) -> bool {
        let mut order = self.order();
        let mut any = false;
        loop {
            let mut moved = false;
            // Everybody from here on upwards has nothing to give that would help.
            let mut done = None;
            while let Some((level, fullest)) = order.fullest_below(done) {
                match self.direct(fullest, &order).or_else(|| self.chain(fullest, &order)) {
                    Some(steps) => {
                        moved = true;
                        self.walk(&steps, &mut order);
                    }
                    None => done = Some((level, fullest)),
                }
            }
            if !moved {
                return any;
            }
            any = true;
        }
    }

    /// Moves what exceeds a zone's part to zones that have less than theirs, from the fullest and to the least
    /// full. Says whether any was moved.
    pub fn spread(&mut self) -> bool {
        let mut order = self.order();
        let mut moved = false;
        for kind in 0..self.groups.kinds.len() {
            let weight = self.groups.kinds[kind].weight;
            for zone in 0..self.groups.zones {
                for _ in 0..self.zone_excess(kind, zone) {
                    let members = 0..u32::try_from(self.members.len()).unwrap_or(u32::MAX);
                    let there = members.filter(|m| self.groups.zone(*m) == zone && self.count(*m, kind) > 0);
                    let fullest = there.max_by_key(|member| self.if_taken(*member, weight));
                    let classes = self.groups.kinds[kind].classes.iter();
                    let to = classes
                        .filter(|class| self.zone_allows(kind, self.groups.classes[**class].zone, None))
                        .filter_map(|class| self.roomiest_in(*class, weight, u32::MAX, &order))
                        .min_by_key(|to| (self.if_given(*to, weight), *to));
                    let (Some(from), Some(to)) = (fullest, to) else { break };
                    self.walk(&[Step { from, kind, to }], &mut order);
                    moved = true;
                }
            }
        }
        moved
    }

    fn order(&self) -> Order {
        let unit = self.groups.kinds.iter().map(|kind| kind.weight).min().unwrap_or(1);
        let classes = self.groups.classes.iter();
        let given = |member: &u32| (self.if_given(*member, unit), *member);
        let roomiest = classes.map(|class| class.open.iter().map(given).collect()).collect();
        let open = self.groups.classes.iter().flat_map(|class| &class.open);
        let fullest = open.map(|member| (self.if_taken(*member, unit), *member)).collect();
        Order { unit, slack: self.slack(), fullest, roomiest }
    }

    /// Members that differ by less count as evenly full: the weight of the heaviest partition, but no more
    /// than a twentieth of an even load.
    fn slack(&self) -> u64 {
        let open = || self.groups.classes.iter().flat_map(|class| &class.open).map(|member| *member as usize);
        let load: u64 = open().map(|member| self.load[member]).sum();
        let capacity: u64 = open().map(|member| u64::from(self.members[member].capacity)).sum();
        let heaviest = self.groups.kinds.iter().map(|kind| kind.weight).max().unwrap_or(0);
        heaviest.min(load / capacity.max(1) / 20)
    }

    /// The single move that helps most, if one helps.
    fn direct(&self, from: u32, order: &Order) -> Option<Vec<Step>> {
        let mut best: Option<(f64, Step)> = None;
        for kind in (0..self.groups.kinds.len()).filter(|kind| self.count(from, *kind) > 0) {
            let weight = self.groups.kinds[kind].weight;
            let Some(to) = self.roomiest(from, kind, order) else { continue };
            if !self.helps(from, weight, to, order) {
                continue;
            }
            let (taken, given) = (self.if_taken(from, weight), self.if_given(to, weight));
            let gain = (taken.as_f64() - given.as_f64()) * weight as f64;
            if best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, Step { from, kind, to }));
            }
        }
        best.map(|(_, step)| vec![step])
    }

    /// Whether the members are more evenly full with a partition of this weight there instead of here. Where
    /// weights differ, little differences are left alone: a move costs more than it gains.
    fn helps(&self, from: u32, weight: u64, to: u32, order: &Order) -> bool {
        let weight = weight.max(order.slack);
        self.if_given(to, weight) < self.if_taken(from, weight)
    }

    /// Who would be least full with one more of this kind, among those that may have it from `from`.
    fn roomiest(&self, from: u32, kind: usize, order: &Order) -> Option<u32> {
        let zone = self.groups.zone(from);
        let classes = self.groups.kinds[kind].classes.iter();
        let weight = self.groups.kinds[kind].weight;
        classes
            .filter(|class| self.zone_allows(kind, self.groups.classes[**class].zone, Some(zone)))
            .filter_map(|class| self.roomiest_in(*class, weight, from, order))
            .min_by_key(|to| (self.if_given(*to, weight), *to))
    }

    fn roomiest_in(&self, class: usize, weight: u64, except: u32, order: &Order) -> Option<u32> {
        let may = |member: &u32| *member != except && self.has_room(*member, weight);
        // One order serves all weights if the capacities are the same.
        if weight == order.unit || self.groups.classes[class].even {
            return order.roomiest[class].iter().map(|(_, member)| *member).find(may);
        }
        let open = self.groups.classes[class].open.iter().copied();
        open.filter(may).min_by_key(|member| (self.if_given(*member, weight), *member))
    }

    /// The shortest chain of moves of one weight that helps.
    fn chain(&self, from: u32, order: &Order) -> Option<Vec<Step>> {
        if self.groups.classes.len() < 2 {
            return None;
        }
        let mut weights: Vec<u64> = (0..self.groups.kinds.len())
            .filter(|kind| self.count(from, *kind) > 0)
            .map(|kind| self.groups.kinds[kind].weight)
            .collect();
        weights.sort_unstable();
        weights.dedup();
        // Without anybody who is that much less full, no chain has an end.
        weights.retain(|weight| {
            let classes = 0..self.groups.classes.len();
            let mut ends = classes.filter_map(|class| self.roomiest_in(class, *weight, from, order));
            ends.any(|to| self.helps(from, *weight, to, order))
        });
        weights.into_iter().rev().find_map(|weight| {
            let starts = (0..self.groups.kinds.len())
                .filter(|kind| self.count(from, *kind) > 0)
                .map(|kind| (kind, Some(from)));
            self.search(starts, weight, Some(from), |draft, class| {
                let to = draft.roomiest_in(class, weight, from, order)?;
                draft.helps(from, weight, to, order).then_some(to)
            })
        })
    }

    /// Searches over classes, breadth first, for a chain that begins with one of `starts` and ends with
    /// somebody whom `end` finds in a class.
    fn search(
        &self,
        starts: impl Iterator<Item = (usize, Option<u32>)>,
        weight: u64,
        except: Option<u32>,
        end: impl Fn(&Self, usize) -> Option<u32>,
    ) -> Option<Vec<Step>> {
        let mut came: Vec<Came> = vec![None; self.groups.classes.len()];
        let mut queue = VecDeque::new();
        let reach = |came: &mut Vec<Came>, queue: &mut VecDeque<usize>, kind: usize, class, giver| {
            if self.groups.kinds[kind].weight != weight {
                return;
            }
            let zone = Option::map(giver, |giver: u32| self.groups.zone(giver));
            for next in &self.groups.kinds[kind].classes {
                if came[*next].is_none() && self.zone_allows(kind, self.groups.classes[*next].zone, zone) {
                    came[*next] = Some((kind, class, giver));
                    queue.push_back(*next);
                }
            }
        };
        for (kind, giver) in starts {
            reach(&mut came, &mut queue, kind, None, giver);
        }
        while let Some(class) = queue.pop_front() {
            if let Some(last) = end(self, class) {
                return Some(trace(&came, class, last));
            }
            for kind in 0..self.groups.kinds.len() {
                let open = self.groups.classes[class].open.iter().copied();
                let giver = open.filter(|m| Some(*m) != except).find(|m| self.count(*m, kind) > 0);
                if giver.is_some() {
                    reach(&mut came, &mut queue, kind, Some(class), giver);
                }
            }
        }
        None
    }

    /// An orphan finds only full members, but one of them can give another partition on.
    pub fn make_room(&mut self, place: usize, kind: usize) -> bool {
        let weight = self.groups.kinds[kind].weight;
        let end = |draft: &Self, class: usize| {
            let open = draft.groups.classes[class].open.iter().copied();
            open.filter(|m| draft.has_room(*m, weight)).min_by_key(|m| (draft.if_given(*m, weight), *m))
        };
        let Some(steps) = self.search([(kind, None)].into_iter(), weight, None, end) else { return false };
        let mut order = self.order();
        self.walk(&steps[1..], &mut order);
        self.give(place, kind, steps[0].to, false);
        true
    }

    /// Carries out a chain, from its end, so that nobody ever has too much.
    fn walk(&mut self, steps: &[Step], order: &mut Order) {
        for Step { from, kind, to } in steps.iter().rev().copied() {
            for member in [from, to] {
                self.enlist(member, order, false);
            }
            if let Some(place) = self.take(from, kind, Some(to)) {
                self.give(place, kind, to, false);
            }
            for member in [from, to] {
                self.enlist(member, order, true);
            }
        }
    }

    fn enlist(&self, member: u32, order: &mut Order, enters: bool) {
        let full = (self.if_taken(member, order.unit), member);
        let room = (self.if_given(member, order.unit), member);
        let roomiest = &mut order.roomiest[self.groups.class_of[member as usize]];
        if enters {
            order.fullest.insert(full);
            roomiest.insert(room);
        } else {
            order.fullest.remove(&full);
            roomiest.remove(&room);
        }
    }
}

/// The steps of the chain that reached a class, and ends with a member there.
fn trace(came: &[Came], class: usize, last: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut at, mut to) = (Some(class), last);
    while let Some((kind, before, giver)) = at.and_then(|class| came[class]) {
        // The first giver of an orphan is nobody; its step is not walked.
        steps.push(Step { from: giver.unwrap_or(u32::MAX), kind, to });
        (at, to) = (before, giver.unwrap_or(u32::MAX));
    }
    steps.reverse();
    steps
}
