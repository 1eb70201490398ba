//! The plan, by example: what an operator would expect.

use crate::planning::{balanced_counts, loads, vacant};
use tenure_core::partitions::{Assignment, Labels, Member, Partition, Readiness, TaskList, plan};

fn members(count: usize) -> Vec<Member> {
    vec![Member::default(); count]
}

fn part(list: u32, number: u32) -> Partition {
    Partition { list, number }
}

/// The assignment as it is once the plan was carried out.
fn planned(lists: &[TaskList], members: &[Member]) -> Assignment {
    plan(lists, members, &vacant(lists)).next
}

/// The same with a member gone; the others keep their numbers.
fn without(current: &Assignment, gone: u32) -> Assignment {
    let mut left = current.clone();
    for (partition, owner) in current.iter() {
        if owner == Some(gone) {
            left.set(partition, None);
        }
    }
    left
}

#[test]
fn without_members_nobody_owns_anything_and_nothing_breaks() {
    let lists = [TaskList::new(5)];
    let outcome = plan(&lists, &[], &vacant(&lists));
    assert!(outcome.moves.is_empty());
    assert_eq!(outcome.next.owner(part(0, 0)), None);
}

#[test]
fn the_last_member_leaves_and_what_it_owned_is_released() {
    let lists = [TaskList::new(3)];
    let current = planned(&lists, &members(1));
    let outcome = plan(&lists, &[], &current);
    assert_eq!(outcome.moves.len(), 3);
    assert!(outcome.moves.iter().all(|one| one.from == Some(0) && one.to.is_none()));
}

#[test]
fn a_task_list_without_partitions_is_nothing_to_own() {
    assert!(plan(&[TaskList::new(0)], &members(3), &Assignment::default()).moves.is_empty());
    assert!(plan(&[], &members(3), &Assignment::default()).moves.is_empty());
}

#[test]
fn with_more_members_than_partitions_nobody_has_two() {
    let lists = [TaskList::new(3)];
    let loads = loads(&lists, &members(10), &planned(&lists, &members(10)));
    assert_eq!(loads.iter().filter(|load| **load == 1).count(), 3);
}

#[test]
fn thirty_task_lists_of_one_partition_do_not_land_on_one_member() {
    let lists = vec![TaskList::new(1); 30];
    let loads = loads(&lists, &members(10), &planned(&lists, &members(10)));
    assert_eq!(loads, vec![3; 10]);
}

#[test]
fn a_death_moves_only_what_the_dead_member_had() {
    let lists = [TaskList::new(60), TaskList::new(40)];
    let mut members = members(10);
    let current = planned(&lists, &members);
    members[3].readiness = Readiness::Held;
    members[3].capacity = 0;
    let outcome = plan(&lists, &members, &without(&current, 3));
    assert_eq!(outcome.moves.len(), 10);
    let mut loads = loads(&lists, &members, &outcome.next);
    loads.remove(3);
    assert_eq!((loads.iter().min(), loads.iter().max()), (Some(&11), Some(&12)));
}

#[test]
fn a_newcomer_gets_its_part_and_nobody_else_moves_anything() {
    let lists = [TaskList::new(60), TaskList::new(40)];
    let current = planned(&lists, &members(9));
    let outcome = plan(&lists, &members(10), &current);
    assert_eq!(outcome.moves.len(), 10);
    assert!(outcome.moves.iter().all(|one| one.to == Some(9)));
    let from_first = outcome.moves.iter().filter(|one| one.partition.list == 0).count();
    assert!((3..=9).contains(&from_first), "it gets some of each task list: {from_first} of the first");
}

#[test]
fn a_balanced_assignment_is_left_alone() {
    let lists = [TaskList::new(17), TaskList { weight: 3, ..TaskList::new(5) }];
    let current = planned(&lists, &members(4));
    assert!(plan(&lists, &members(4), &current).moves.is_empty());
}

#[test]
fn a_task_list_that_grows_moves_nothing_that_is_there() {
    let current = planned(&[TaskList::new(8)], &members(4));
    let outcome = plan(&[TaskList::new(12)], &members(4), &current);
    assert_eq!(outcome.moves.len(), 4);
    assert!(outcome.moves.iter().all(|one| one.from.is_none() && one.partition.number >= 8));
}

#[test]
fn a_task_list_that_shrinks_has_its_last_partitions_released() {
    let current = planned(&[TaskList::new(12)], &members(4));
    let outcome = plan(&[TaskList::new(8)], &members(4), &current);
    let released = outcome.moves.iter().filter(|one| one.to.is_none());
    assert_eq!(released.map(|one| one.partition.number).collect::<Vec<_>>(), [8, 9, 10, 11]);
}

#[test]
fn a_task_list_that_is_gone_or_paused_is_released() {
    let lists = [TaskList::new(4), TaskList::new(4)];
    let current = planned(&lists, &members(2));
    let gone = plan(&lists[..1], &members(2), &current);
    let paused =
        plan(&[lists[0].clone(), TaskList { paused: true, ..TaskList::new(4) }], &members(2), &current);
    for outcome in [gone, paused] {
        let released: Vec<Partition> =
            outcome.moves.iter().filter(|one| one.to.is_none()).map(|one| one.partition).collect();
        assert_eq!(released, (0..4).map(|number| part(1, number)).collect::<Vec<_>>());
    }
}

#[test]
fn weights_count_over_all_task_lists_together() {
    let lists = [TaskList { weight: 5, ..TaskList::new(2) }, TaskList::new(10)];
    assert_eq!(loads(&lists, &members(4), &planned(&lists, &members(4))), vec![5; 4]);
}

#[test]
fn capacity_shares_the_work_out_in_proportion() {
    let lists = [TaskList::new(100)];
    let mut members = members(3);
    members[1].capacity = 3;
    assert_eq!(loads(&lists, &members, &planned(&lists, &members)), [20, 60, 20]);
}

#[test]
fn a_limit_is_never_exceeded_even_if_something_stays_without_owner() {
    let lists = [TaskList::new(10)];
    let mut members = members(2);
    members[0].limit = Some(3);
    members[1].limit = Some(4);
    assert_eq!(loads(&lists, &members, &planned(&lists, &members)), [3, 4]);
}

#[test]
fn a_member_makes_room_for_what_only_it_may_have() {
    let gpu: Labels = [7].into_iter().collect();
    let lists = [TaskList::new(4), TaskList { needs: gpu.clone(), ..TaskList::new(2) }];
    let mut members = members(2);
    members[0] = Member { labels: gpu, limit: Some(2), ..Member::default() };
    // The first member is full of what the second may have as well.
    let mut current = vacant(&lists);
    for number in 0..2 {
        current.set(part(0, number), Some(0));
    }
    let outcome = plan(&lists, &members, &current);
    assert!((0..2).all(|number| outcome.next.owner(part(1, number)) == Some(0)));
    assert_eq!(loads(&lists, &members, &outcome.next), [2, 4]);
}

#[test]
fn labels_and_exclusions_are_kept() {
    let labels: Labels = [1, 2].into_iter().collect();
    let lists = [
        TaskList { needs: [2].into_iter().collect(), ..TaskList::new(6) },
        TaskList { excluded: vec![0, 3], ..TaskList::new(6) },
    ];
    let mut members = members(4);
    members[2].labels = labels.clone();
    members[3].labels = labels;
    let next = planned(&lists, &members);
    for (partition, owner) in next.iter() {
        let allowed: &[u32] = if partition.list == 0 { &[2, 3] } else { &[1, 2] };
        assert!(allowed.contains(&owner.unwrap()), "{partition:?} is with {owner:?}");
    }
    assert_eq!(loads(&lists, &members, &next), [0, 4, 4, 4], "chains even out what single moves cannot");
}

#[test]
fn zones_get_even_parts_of_a_spread_task_list() {
    let lists = [TaskList { spread: true, ..TaskList::new(9) }, TaskList::new(9)];
    let mut members = members(7);
    for (index, zone) in [1, 1, 1, 1, 1, 2, 3].into_iter().enumerate() {
        members[index].zone = zone;
    }
    let next = planned(&lists, &members);
    let mut zones = [0; 4];
    for (partition, owner) in next.iter() {
        zones[usize::from(members[owner.unwrap() as usize].zone)] += u32::from(partition.list == 0);
    }
    assert_eq!(zones, [0, 3, 3, 3]);
    assert_eq!(loads(&lists, &members, &next).iter().sum::<u64>(), 18);
}

#[test]
fn a_zone_that_dies_takes_no_partition_with_it() {
    let lists = [TaskList { spread: true, ..TaskList::new(9) }];
    let mut members = members(3);
    for (index, member) in members.iter_mut().enumerate() {
        member.zone = u16::try_from(index).unwrap();
    }
    let current = planned(&lists, &members);
    let left = plan(&lists, &members[..2], &current);
    assert_eq!(left.moves.len(), 3);
    assert!(left.next.iter().all(|(_, owner)| owner.is_some()));
    let back = plan(&lists, &members, &left.next);
    assert_eq!(back.moves.len(), 3, "and it gets its part again when it is back");
}

#[test]
fn a_pinned_partition_is_with_its_member_as_long_as_that_is_there() {
    let lists = [TaskList { pins: vec![(0, 2), (1, 2), (2, 2)], ..TaskList::new(6) }];
    let next = planned(&lists, &members(3));
    assert!((0..3).all(|number| next.owner(part(0, number)) == Some(2)));
    assert_eq!(balanced_counts(&loads(&lists, &members(3), &next)), vec![3, 2, 1]);
    let left = plan(&lists, &members(2), &next);
    assert!(left.next.iter().all(|(_, owner)| owner.is_some()), "while it is gone, others have them");
    assert_eq!(
        plan(&lists, &members(3), &left.next).next.owner(part(0, 0)),
        Some(2),
        "and it gets them back"
    );
}

#[test]
fn a_draining_member_gives_all_away_that_others_can_take() {
    let lists = [TaskList::new(6), TaskList { needs: [1].into_iter().collect(), ..TaskList::new(2) }];
    let mut members = members(3);
    members[0].labels = [1].into_iter().collect();
    let current = planned(&lists, &members);
    members[0].readiness = Readiness::Draining;
    let outcome = plan(&lists, &members, &current);
    let kept: Vec<Partition> =
        outcome.next.iter().filter(|(_, owner)| *owner == Some(0)).map(|(partition, _)| partition).collect();
    assert_eq!(kept, [part(1, 0), part(1, 1)], "only what nobody else may have");
}

#[test]
fn a_held_member_keeps_what_it_has_and_gets_nothing_more() {
    let lists = [TaskList::new(9)];
    let mut members = members(3);
    let current = planned(&lists, &members);
    members[1].readiness = Readiness::Held;
    let grown = [TaskList::new(15)];
    let outcome = plan(&grown, &members, &current);
    assert_eq!(loads(&grown, &members, &outcome.next), [6, 3, 6]);
    assert!(plan(&lists, &members, &current).moves.is_empty());
}

#[test]
fn the_same_question_has_the_same_answer() {
    let lists = [TaskList::new(50), TaskList { weight: 2, spread: true, ..TaskList::new(33) }];
    assert_eq!(planned(&lists, &members(7)), planned(&lists, &members(7)));
}
