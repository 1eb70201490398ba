//! The plan against the best of all possible assignments, on cases small enough to try them all.

use crate::planning::brute::{self, may_own};
use crate::planning::{loads, vacant};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tenure_core::partitions::{Assignment, Labels, Member, Plan, Readiness, TaskList, plan};

/// A case: task lists, members, and who owns what now.
#[derive(Clone, Debug)]
struct Case {
    lists: Vec<TaskList>,
    members: Vec<Member>,
    current: Assignment,
}

impl Case {
    fn plan(&self) -> Plan {
        plan(&self.lists, &self.members, &self.current)
    }
}

/// Any current assignment, also one with owners that are gone or must not own it.
fn current(lists: &[TaskList], members: usize) -> impl Strategy<Value = Assignment> + use<> {
    let vacant = vacant(lists);
    let owner = prop_oneof![1 => Just(None), 4 => (0..=u32::try_from(members).unwrap_or(0)).prop_map(Some)];
    prop::collection::vec(owner, vacant.len()).prop_map(move |owners| {
        let mut current = vacant.clone();
        for ((partition, _), owner) in vacant.iter().zip(owners) {
            current.set(partition, owner);
        }
        current
    })
}

fn cases(
    list: impl Strategy<Value = TaskList> + Clone + 'static,
    member: impl Strategy<Value = Member> + Clone + 'static,
    lists: usize,
    members: usize,
) -> impl Strategy<Value = Case> {
    (prop::collection::vec(list, 1..=lists), prop::collection::vec(member, 1..=members)).prop_flat_map(
        |(lists, members)| {
            current(&lists, members.len()).prop_map(move |current| Case {
                lists: lists.clone(),
                members: members.clone(),
                current,
            })
        },
    )
}

fn plain_list() -> impl Strategy<Value = TaskList> + Clone {
    (0..4u32).prop_map(TaskList::new)
}

fn member_with_capacity() -> impl Strategy<Value = Member> + Clone {
    (1..4u32).prop_map(|capacity| Member { capacity, ..Member::default() })
}

fn labels() -> impl Strategy<Value = Labels> + Clone {
    prop::collection::vec(0..2u32, 0..3).prop_map(|labels| labels.into_iter().collect())
}

/// A task list of unit weight that not everybody may own.
fn picky_list() -> impl Strategy<Value = TaskList> + Clone {
    let needs = prop_oneof![1 => Just(Labels::default()), 2 => labels()];
    (0..4u32, needs, prop::collection::vec(0..4u32, 0..2)).prop_map(|(count, needs, excluded)| TaskList {
        needs,
        excluded,
        ..TaskList::new(count)
    })
}

fn limited_member() -> impl Strategy<Value = Member> + Clone {
    (1..3u32, prop::option::weighted(0.3, 0..4u64), labels()).prop_map(|(capacity, limit, labels)| Member {
        capacity,
        limit,
        labels,
        ..Member::default()
    })
}

/// Anything that can be asked of a task list.
fn any_list() -> impl Strategy<Value = TaskList> + Clone {
    let pins = prop::collection::vec((0..5u32, 0..5u32), 0..2);
    (0..12u32, 0..6u32, prop::bool::weighted(0.1), picky_list(), pins, any::<bool>()).prop_map(
        |(partitions, weight, paused, picky, pins, spread)| TaskList {
            partitions,
            weight,
            paused,
            pins,
            spread,
            ..picky
        },
    )
}

/// The same, but neither pinned nor spread.
fn free_list() -> impl Strategy<Value = TaskList> + Clone {
    any_list().prop_map(|list| TaskList { pins: Vec::new(), spread: false, ..list })
}

fn any_member() -> impl Strategy<Value = Member> + Clone {
    let readiness =
        prop_oneof![6 => Just(Readiness::Open), 1 => Just(Readiness::Held), 1 => Just(Readiness::Draining)];
    (0..4u32, prop::option::weighted(0.2, 0..30u64), labels(), 0..3u16, readiness).prop_map(
        |(capacity, limit, labels, zone, readiness)| Member { capacity, limit, zone, labels, readiness },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, rng_seed: RngSeed::Fixed(9), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn without_constraints_balance_and_moves_are_the_optimum(case in cases(plain_list(), member_with_capacity(), 3, 4)) {
        prop_assume!(case.current.len() <= 7);
        let planned = brute::score(&case.lists, &case.members, &case.current, &case.plan().next);
        prop_assert_eq!(planned, brute::best(&case.lists, &case.members, &case.current));
    }

    #[test]
    fn with_constraints_whoever_can_be_owned_is_and_balance_is_the_optimum(case in cases(picky_list(), limited_member(), 3, 4)) {
        prop_assume!(case.current.len() <= 6);
        let planned = brute::score(&case.lists, &case.members, &case.current, &case.plan().next);
        let best = brute::best(&case.lists, &case.members, &case.current);
        prop_assert_eq!(planned.unowned, best.unowned);
        prop_assert_eq!(planned.unevenness, best.unevenness);
        prop_assert!(planned.moves <= best.moves + 2, "{} moves, and {} would do", planned.moves, best.moves);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, rng_seed: RngSeed::Fixed(9), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_the_rules_are_kept(case in cases(any_list(), any_member(), 4, 6)) {
        let Plan { next, moves } = case.plan();
        let loads = loads(&case.lists, &case.members, &next);
        for (partition, owner) in next.iter() {
            let Some(owner) = owner else { continue };
            let (list, member) = (&case.lists[partition.list as usize], &case.members[owner as usize]);
            let pinned = list.pins.contains(&(partition.number, owner)) && member.readiness == Readiness::Open;
            prop_assert!(!list.paused);
            prop_assert!(pinned || may_own(list, owner, member), "{partition:?} with {owner}");
            let new = case.current.owner(partition) != Some(owner);
            prop_assert!(!new || member.readiness == Readiness::Open, "{partition:?} goes to {owner}");
        }
        for (index, (member, load)) in case.members.iter().zip(&loads).enumerate() {
            let fixed = case.lists.iter().any(|list| list.pins.iter().any(|pin| pin.1 as usize == index));
            let forced = fixed || member.readiness != Readiness::Open;
            prop_assert!(forced || member.limit.is_none_or(|limit| *load <= limit), "{index} carries {load}");
        }
        for one in &moves {
            prop_assert_eq!(one.from, case.current.owner(one.partition));
            prop_assert_eq!(one.to, next.owner(one.partition));
            prop_assert_ne!(one.from, one.to);
        }
        let again = plan(&case.lists, &case.members, &next);
        prop_assert!(again.moves.is_empty(), "planned again, {:?}", again.moves);
    }

    #[test]
    fn no_single_move_would_make_the_members_more_evenly_full(case in cases(free_list(), any_member(), 4, 6)) {
        let next = case.plan().next;
        let loads = loads(&case.lists, &case.members, &next);
        let open = || case.members.iter().zip(&loads).filter(|(m, _)| m.readiness == Readiness::Open && m.capacity > 0);
        let capacity: u64 = open().map(|(member, _)| u64::from(member.capacity)).sum();
        let heaviest = case.lists.iter().map(|list| u64::from(list.weight.max(1))).max().unwrap_or(0);
        let slack = heaviest.min(open().map(|(_, load)| load).sum::<u64>() / capacity.max(1) / 20);
        for (partition, owner) in next.iter() {
            let Some(from) = owner else { continue };
            let list = &case.lists[partition.list as usize];
            let weight = u64::from(list.weight.max(1));
            if case.members[from as usize].readiness != Readiness::Open {
                continue;
            }
            for (to, member) in (0..).zip(&case.members) {
                let load = loads[to as usize] + weight;
                let takes = member.readiness == Readiness::Open && may_own(list, to, member)
                    && member.limit.is_none_or(|limit| load <= limit) && to != from;
                // As if it were as heavy as the slack: little differences are left alone.
                let apart = i128::from(weight.max(slack));
                let level = |index: u32, more: i128| {
                    (2 * i128::from(loads[index as usize]) + more) * 12 / i128::from(case.members[index as usize].capacity)
                };
                let better = takes && level(to, apart) < level(from, -apart);
                prop_assert!(!better, "{partition:?} should go from {from} to {to}: {loads:?}");
            }
        }
    }
}
