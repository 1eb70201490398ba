//! What the tests of the plan share.
#![allow(dead_code, reason = "every test uses a part of it")]

pub mod brute;

use tenure_core::partitions::{Assignment, Member, TaskList};

/// Nobody owns anything yet.
pub fn vacant(lists: &[TaskList]) -> Assignment {
    Assignment::vacant(lists.iter().map(|list| list.partitions))
}

/// What each member carries.
pub fn loads(lists: &[TaskList], members: &[Member], assignment: &Assignment) -> Vec<u64> {
    let mut loads = vec![0; members.len()];
    for (partition, owner) in assignment.iter() {
        if let Some(owner) = owner {
            loads[owner as usize] += u64::from(lists[partition.list as usize].weight.max(1));
        }
    }
    loads
}

/// The loads, the highest first.
pub fn balanced_counts(loads: &[u64]) -> Vec<u64> {
    let mut sorted = loads.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    sorted
}
