//! A plan in the making: the next assignment, and what must be known of it at any moment.

use super::groups::Groups;
use super::level::Level;
use crate::partitions::assignment::Assignment;
use crate::partitions::member::{Member, Readiness};
use crate::partitions::tasks::TaskList;

pub(super) struct Draft<'a> {
    pub lists: &'a [TaskList],
    pub members: &'a [Member],
    pub current: &'a Assignment,
    pub next: Assignment,
    pub groups: Groups,
    pub load: Vec<u64>,
    /// How many partitions of each kind a member has that may be moved, by member and kind.
    counts: Vec<u32>,
    /// How many of a spread kind a zone has, by kind and zone.
    in_zone: Vec<u32>,
    /// What has no owner yet, by task list.
    pub orphans: Vec<Vec<usize>>,
    /// What each member has that may be moved; made when it is first needed.
    held: Option<Vec<Held>>,
}

/// What a member has that may be moved, by place.
#[derive(Clone, Debug, Default)]
struct Held {
    /// What it has already.
    own: Vec<usize>,
    /// What it gets by this plan: to move that costs nothing.
    guests: Vec<usize>,
    /// Where to look next among its own, so that one task list after the other is taken from.
    cursor: usize,
}

impl<'a> Draft<'a> {
    pub fn new(lists: &'a [TaskList], members: &'a [Member], current: &'a Assignment) -> Self {
        let groups = Groups::new(lists, members);
        let (kinds, zones) = (groups.kinds.len(), groups.zones);
        Self {
            lists,
            members,
            current,
            next: Assignment::vacant(lists.iter().map(|list| list.partitions)),
            groups,
            load: vec![0; members.len()],
            counts: vec![0; members.len() * kinds],
            in_zone: vec![0; kinds * zones],
            orphans: vec![Vec::new(); lists.len()],
            held: None,
        }
    }

    // ----- what is --------------------------------------------------------------------------

    /// What speaks against giving it a partition of this weight.
    pub fn if_given(&self, member: u32, weight: u64) -> Level {
        let member = member as usize;
        Level::with(self.load[member], weight, self.members[member].capacity)
    }

    /// What speaks for taking a partition of this weight from it.
    pub fn if_taken(&self, member: u32, weight: u64) -> Level {
        let member = member as usize;
        Level::without(self.load[member], weight, self.members[member].capacity)
    }

    pub fn has_room(&self, member: u32, weight: u64) -> bool {
        let member = member as usize;
        self.members[member].limit.is_none_or(|limit| self.load[member] + weight <= limit)
    }

    pub fn is_open(&self, member: u32) -> bool {
        self.members.get(member as usize).is_some_and(|member| member.readiness == Readiness::Open)
    }

    /// How many partitions of a kind a member has that may be moved.
    pub fn count(&self, member: u32, kind: usize) -> u32 {
        self.counts[member as usize * self.groups.kinds.len() + kind]
    }

    /// Whether one more of this kind keeps the zone within its part; `from` is where it would come from.
    pub fn zone_allows(&self, kind: usize, zone: usize, from: Option<usize>) -> bool {
        let within = |limit| from == Some(zone) || self.in_zone[kind * self.groups.zones + zone] < limit;
        self.groups.kinds[kind].zone_limit.is_none_or(within)
    }

    /// By how much a zone exceeds its part of a kind.
    pub fn zone_excess(&self, kind: usize, zone: usize) -> u32 {
        let has = self.in_zone[kind * self.groups.zones + zone];
        self.groups.kinds[kind].zone_limit.map_or(0, |limit| has.saturating_sub(limit))
    }

    /// Whether everything has an owner, and every zone at most its part.
    pub fn is_settled(&self) -> bool {
        let exceeds = |kind| (0..self.groups.zones).any(|zone| self.zone_excess(kind, zone) > 0);
        self.orphans.iter().all(Vec::is_empty) && !(0..self.groups.kinds.len()).any(exceeds)
    }

    pub fn kind_at(&self, place: usize) -> usize {
        self.groups.kind_of[self.next.at(place).list as usize]
    }

    /// Who has it now, if it is still there.
    pub fn former(&self, place: usize) -> Option<u32> {
        self.current.owner(self.next.at(place)).filter(|owner| (*owner as usize) < self.members.len())
    }

    // ----- what changes ---------------------------------------------------------------------

    /// Gives a partition without owner to a member. `fixed`: it is not to be moved again.
    pub fn give(&mut self, place: usize, kind: usize, member: u32, fixed: bool) {
        self.next.put(place, member);
        self.tally(kind, member, fixed);
        let guest = self.former(place) != Some(member);
        if let (Some(held), false) = (&mut self.held, fixed) {
            let held = &mut held[member as usize];
            if guest { held.guests.push(place) } else { held.own.push(place) }
        }
    }

    /// Counts a partition that a member has.
    pub fn tally(&mut self, kind: usize, member: u32, fixed: bool) {
        self.load[member as usize] += self.groups.kinds[kind].weight;
        if !fixed {
            self.counts[member as usize * self.groups.kinds.len() + kind] += 1;
        }
        if self.groups.kinds[kind].zone_limit.is_some() {
            self.in_zone[kind * self.groups.zones + self.groups.zone(member)] += 1;
        }
    }

    /// Takes one partition of a kind from a member: one that moves anyway if there is one, best one
    /// that comes from `to`.
    pub fn take(&mut self, member: u32, kind: usize, to: Option<u32>) -> Option<usize> {
        let place = self.choose(member, kind, to)?;
        self.load[member as usize] -= self.groups.kinds[kind].weight;
        self.counts[member as usize * self.groups.kinds.len() + kind] -= 1;
        if self.groups.kinds[kind].zone_limit.is_some() {
            self.in_zone[kind * self.groups.zones + self.groups.zone(member)] -= 1;
        }
        Some(place)
    }

    fn choose(&mut self, member: u32, kind: usize, to: Option<u32>) -> Option<usize> {
        if self.held.is_none() {
            self.held = Some(self.hold());
        }
        let mut held = std::mem::take(&mut self.held.as_mut()?[member as usize]);
        let guest = {
            let of_kind = |place: &&usize| self.kind_at(**place) == kind;
            let guests = || held.guests.iter().filter(of_kind);
            let back = guests().find(|place| to.is_some() && self.former(**place) == to);
            back.or_else(|| guests().next()).copied()
        };
        let place = match guest {
            Some(place) => {
                held.guests.retain(|other| *other != place);
                Some(place)
            }
            None => self.choose_own(&mut held, kind),
        };
        self.held.as_mut()?[member as usize] = held;
        place
    }

    /// One of a member's own, from ever other task lists: the cursor leaps by the golden ratio.
    fn choose_own(&self, held: &mut Held, kind: usize) -> Option<usize> {
        let count = held.own.len();
        let start = held.cursor % count.max(1);
        let index = (start..count).chain(0..start).find(|at| self.kind_at(held.own[*at]) == kind)?;
        held.cursor = index + count * 618 / 1000;
        Some(held.own.swap_remove(index))
    }

    fn hold(&self) -> Vec<Held> {
        let mut held = vec![Held::default(); self.members.len()];
        for (index, held) in held.iter_mut().enumerate() {
            held.cursor = index * 7919;
        }
        for (place, owner) in self.next.owners().iter().enumerate() {
            let Some(held) = held.get_mut(*owner as usize) else { continue };
            if self.pinned(place) == Some(*owner) {
                continue;
            }
            if self.former(place) == Some(*owner) { held.own.push(place) } else { held.guests.push(place) }
        }
        held
    }

    /// The member that a partition is pinned to, if it is there and open.
    pub fn pinned(&self, place: usize) -> Option<u32> {
        let partition = self.next.at(place);
        let pins = &self.lists[partition.list as usize].pins;
        let pin = pins.iter().find(|(number, _)| *number == partition.number)?;
        Some(pin.1).filter(|member| self.is_open(*member))
    }
}
