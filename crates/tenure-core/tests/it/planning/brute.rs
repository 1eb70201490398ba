//! The best assignment there is, found by looking at all of them.

use std::cmp::Ordering;

use tenure_core::partitions::{Assignment, Member, Partition, Readiness, TaskList};

/// How good an assignment is. Less is better, the first that differs decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    pub unowned: usize,
    pub unevenness: u64,
    pub moves: usize,
}

/// How unevenly full the members are: the sum of load² / capacity, for capacities up to 4, times 12.
pub fn unevenness(loads: &[u64], members: &[Member]) -> u64 {
    let open = members.iter().zip(loads).filter(|(m, _)| m.readiness == Readiness::Open && m.capacity > 0);
    open.map(|(member, load)| load * load * 12 / u64::from(member.capacity)).sum()
}

impl Score {
    fn key(&self) -> (usize, u64, usize) {
        (self.unowned, self.unevenness, self.moves)
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Whether a member may own partitions of a task list at all.
pub fn may_own(list: &TaskList, index: u32, member: &Member) -> bool {
    !list.paused
        && member.capacity > 0
        && member.labels.satisfy(&list.needs)
        && !list.excluded.contains(&index)
}

/// How good an assignment is.
pub fn score(lists: &[TaskList], members: &[Member], current: &Assignment, next: &Assignment) -> Score {
    let loads = super::loads(lists, members, next);
    let owned = |(_, owner): &(Partition, Option<u32>)| owner.is_none();
    // What its owner may not keep moves in any case.
    let stays = |partition: Partition| {
        let owner = current.owner(partition)?;
        let member = members.get(owner as usize)?;
        may_own(&lists[partition.list as usize], owner, member).then_some(owner)
    };
    let moved = |(partition, owner): &(Partition, Option<u32>)| {
        stays(*partition).is_some_and(|was| *owner != Some(was))
    };
    let moves = next.iter().filter(moved).count();
    Score { unowned: next.iter().filter(owned).count(), unevenness: unevenness(&loads, members), moves }
}

/// The score of the best assignment, where all members are open.
pub fn best(lists: &[TaskList], members: &[Member], current: &Assignment) -> Score {
    let partitions: Vec<Partition> = super::vacant(lists).iter().map(|(partition, _)| partition).collect();
    let mut search = Search {
        lists,
        members,
        current,
        partitions: &partitions,
        next: super::vacant(lists),
        loads: vec![0; members.len()],
        best: None,
    };
    search.descend(0);
    search.best.expect("the empty assignment is one")
}

struct Search<'a> {
    lists: &'a [TaskList],
    members: &'a [Member],
    current: &'a Assignment,
    partitions: &'a [Partition],
    next: Assignment,
    loads: Vec<u64>,
    best: Option<Score>,
}

impl Search<'_> {
    fn descend(&mut self, depth: usize) {
        let Some(partition) = self.partitions.get(depth).copied() else {
            let score = score(self.lists, self.members, self.current, &self.next);
            if self.best.as_ref().is_none_or(|best| score < *best) {
                self.best = Some(score);
            }
            return;
        };
        let list = &self.lists[partition.list as usize];
        let weight = u64::from(list.weight.max(1));
        self.descend(depth + 1);
        for (index, member) in (0..).zip(self.members) {
            let load = self.loads[index as usize] + weight;
            if !may_own(list, index, member) || member.limit.is_some_and(|limit| load > limit) {
                continue;
            }
            self.next.set(partition, Some(index));
            self.loads[index as usize] += weight;
            self.descend(depth + 1);
            self.loads[index as usize] -= weight;
        }
        self.next.set(partition, None);
    }
}
