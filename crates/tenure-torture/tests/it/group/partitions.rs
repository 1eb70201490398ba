//! The network is cut: in halves, in one direction, everywhere; and healed.

use std::time::Duration;

use super::crew::{Crew, Leader};

const TTL: Duration = Duration::from_secs(2);

/// Cuts whoever leads off in some way. Gives who that was, and when it has lost its lease.
fn cut_off_the_leader(crew: &Crew, cut: impl Fn(&Crew, &Leader)) -> (Leader, u64) {
    let mut leader = crew.leader_above(0);
    loop {
        cut(crew, &leader);
        let done = tenure_store::clock::now().as_nanos();
        let lost = crew.lost(&leader).at();
        if lost > done {
            return (leader, lost);
        }
        // On a machine that stood still it had lapsed before that, and another leads.
        crew.lan.heal();
        leader = crew.leader_above(leader.term);
    }
}

/// Cuts the leader off in some way, and demands that it steps down before another one starts.
fn cut_off(cut: impl Fn(&Crew, &Leader)) {
    let crew = Crew::of_three(TTL);
    let (old, _) = cut_off_the_leader(&crew, cut);
    let next = crew.leader_above(old.term);
    assert_ne!(next.machine, old.machine);
    heal(&crew);
    // By what passed their checks, not by when they got to say so.
    let leaderships = crew.verdict();
    let under = |term: u64| leaderships.iter().find(|led| led.term == term);
    if let (Some(old), Some(next)) = (under(old.term), under(next.term)) {
        assert!(old.until < next.from, "the minority's leader steps down before the majority's starts");
    }
}

/// Heals the network, and waits until whoever was cut off has found back: every member has applied the same.
fn heal(crew: &Crew) {
    crew.lan.heal();
    let end = tenure_store::clock::now() + super::HANG;
    loop {
        let members = crew.members();
        assert_eq!(members.len(), 3);
        if members.iter().all(|member| member.behind.is_some_and(|behind| behind < 5)) {
            return;
        }
        assert!(tenure_store::clock::now() < end, "{members:?}");
    }
}

#[test]
fn a_leader_on_the_side_of_the_minority_steps_down_before_the_majority_elects_another() {
    cut_off(|crew, leader| crew.lan.part(&[crew.machine(leader.machine)]));
}

#[test]
fn a_leader_that_nobody_hears_is_succeeded_without_overlap() {
    cut_off(|crew, leader| crew.machine(leader.machine).mute());
}

#[test]
fn a_leader_that_hears_nobody_is_succeeded_without_overlap() {
    cut_off(|crew, leader| crew.machine(leader.machine).deafen());
}

#[test]
fn a_leader_on_the_side_of_the_majority_goes_on_and_whoever_was_cut_off_finds_back() {
    let crew = Crew::of_steady_three();
    let leader = crew.leader_above(0);
    let other = (0..3).find(|&number| number != leader.machine).unwrap();
    crew.lan.part(&[crew.machine(other)]);
    // The group may need a new head; the election does not need a new leader.
    crew.renews(leader.machine, 5);
    heal(&crew);
    let leaderships = crew.verdict();
    assert!(leaderships.iter().all(|led| led.term <= leader.term), "{leaderships:?}");
}

#[test]
fn without_a_majority_nobody_leads_and_with_one_somebody_does_again() {
    let crew = Crew::of_three(TTL);
    let (old, lost) = cut_off_the_leader(&crew, |crew, _| {
        let everybody: Vec<_> = (0..3).map(|number| crew.machine(number)).collect();
        for here in &everybody {
            for there in everybody.iter().filter(|there| there.address() != here.address()) {
                here.lose_from(there);
            }
        }
    });
    // Longer than it takes to elect somebody where that is possible.
    std::thread::sleep(TTL * 2);
    let healed = tenure_store::clock::now().as_nanos();
    crew.lan.heal();
    let next = crew.leader_above(old.term);
    assert!(lost < healed && next.at > healed, "nobody was elected while there was no majority");
    crew.verdict();
}
