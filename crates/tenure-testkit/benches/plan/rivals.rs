//! Small models of two other rules, to compare with.

use tenure_core::Dice;
use tenure_core::partitions::{Assignment, Member, Partition, TaskList};

fn vacant(lists: &[TaskList]) -> Assignment {
    Assignment::vacant(lists.iter().map(|list| list.partitions))
}

/// Kafka's sticky rule: whoever is there keeps what it has, what has no owner goes to the member with the fewest
/// partitions, and then partitions go from the one with the most to the one with the fewest, as long as
/// they differ by more than one. It counts partitions: it knows neither weights nor capacities.
pub fn sticky(lists: &[TaskList], members: &[Member], before: &Assignment) -> Assignment {
    let mut next = vacant(lists);
    let mut has: Vec<Vec<Partition>> = vec![Vec::new(); members.len()];
    let mut orphans = Vec::new();
    for (partition, _) in vacant(lists).iter() {
        match before.owner(partition).filter(|owner| members[*owner as usize].capacity > 0) {
            Some(owner) => has[owner as usize].push(partition),
            None => orphans.push(partition),
        }
    }
    let there = || (0..members.len()).filter(|member| members[*member].capacity > 0);
    for partition in orphans {
        if let Some(fewest) = there().min_by_key(|member| has[*member].len()) {
            has[fewest].push(partition);
        }
    }
    while let (Some(most), Some(fewest)) =
        (there().max_by_key(|member| has[*member].len()), there().min_by_key(|member| has[*member].len()))
    {
        if has[most].len() <= has[fewest].len() + 1 {
            break;
        }
        let moved = has[most].pop();
        has[fewest].extend(moved);
    }
    for (member, has) in (0..).zip(has) {
        for partition in has {
            next.set(partition, Some(member));
        }
    }
    next
}

/// Consistent hashing: each member has as many points on a ring as its capacity times a hundred, and a
/// partition belongs to the next point after its own.
pub fn hashed(lists: &[TaskList], members: &[Member], _: &Assignment) -> Assignment {
    let hash = |a: u64, b: u64| Dice::new((a << 32) ^ b ^ 0x5eed).roll();
    let mut ring: Vec<(u64, u32)> = (0..)
        .zip(members)
        .flat_map(|(index, member)| {
            (0..u64::from(member.capacity) * 100).map(move |point| (hash(u64::from(index) + 1, point), index))
        })
        .collect();
    ring.sort_unstable();
    let mut next = vacant(lists);
    for (partition, _) in vacant(lists).iter() {
        let point = hash(1 << 20 | u64::from(partition.list), u64::from(partition.number));
        let at = ring.partition_point(|(other, _)| *other < point) % ring.len().max(1);
        next.set(partition, ring.get(at).map(|(_, member)| *member));
    }
    next
}
