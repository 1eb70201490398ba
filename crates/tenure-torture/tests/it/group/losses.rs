//! Members are killed or stopped: those that lead the election, the group, both, or neither.

use std::time::Duration;

use tenure_testkit::patience::until;

use super::crew::{Crew, Leader};

const TTL: Duration = Duration::from_secs(2);

/// A crew in which the member that leads the election leads the group too, or does not.
fn crew(both: bool) -> (Crew, Leader) {
    arranged(Crew::of_three(TTL), both)
}

fn arranged(crew: Crew, both: bool) -> (Crew, Leader) {
    let mut leader = crew.leader_above(0);
    loop {
        let head = crew.head();
        if (head == leader.machine) == both {
            return (crew, leader);
        }
        // Whoever leads the election hands it over, until it is as we want it.
        let to = if both { head } else { (0..3).find(|&number| number != head).unwrap() };
        let handed = crew.ask(async move |store| {
            use tenure::Store as _;
            let (election, to) = (tenure::ElectionName::new(super::ELECTION).unwrap(), format!("n{to}"));
            store.petition(election, Some(tenure::NodeId::new(to).unwrap())).await
        });
        if handed.is_ok() {
            leader = crew.leader_above(leader.term);
        }
    }
}

/// Kills the member that leads the election. (How long nobody leads then is measured by `cargo xtask bench`: here
/// the machine may be busy with other things.)
fn another_leads(both: bool) {
    let (mut crew, leader) = crew(both);
    crew.kill(leader.machine);
    let mut next = crew.leader_above(leader.term);
    // On a machine that stood still it may have lost its lease and won the next before it was killed.
    while next.machine == leader.machine {
        next = crew.leader_above(next.term);
    }
    crew.verdict();
}

#[test]
fn after_the_loss_of_the_machine_that_leads_both_another_leads() {
    another_leads(true);
}

#[test]
fn after_the_loss_of_a_leader_that_does_not_lead_the_group_another_leads() {
    another_leads(false);
}

#[test]
fn the_loss_of_the_member_that_leads_the_group_costs_no_election_its_leader() {
    let (mut crew, leader) = arranged(Crew::of_steady_three(), false);
    let head = crew.head();
    crew.kill(head);
    until("the group has another head", || crew.head() != head);
    crew.renews(leader.machine, 3);
    let leaderships = crew.verdict();
    assert!(leaderships.iter().all(|led| led.term <= leader.term), "{leaderships:?}");
}

#[test]
fn the_loss_of_any_other_member_changes_nothing_and_it_comes_back_on_its_own_disk() {
    let (mut crew, leader) = arranged(Crew::of_steady_three(), true);
    let other = (0..3).find(|&number| number != leader.machine).unwrap();
    let before = crew.members();
    crew.kill(other);
    crew.start(other);
    let address = crew.address(other);
    let back = until("it is back", || {
        crew.members().into_iter().find(|member| member.address == address && member.behind == Some(0))
    });
    assert!(before.iter().any(|member| member.id == back.id), "under its own name");
    let leaderships = crew.verdict();
    assert!(leaderships.iter().all(|led| led.term <= leader.term), "{leaderships:?}");
}

#[test]
fn a_leader_that_stands_still_is_succeeded_and_knows_it_when_it_goes_on() {
    let (mut crew, leader) = crew(true);
    crew.stop(leader.machine);
    let next = crew.leader_above(leader.term);
    crew.go_on(leader.machine);
    assert_eq!(crew.lost(&leader).text("reason"), "lapsed");
    let leaderships = crew.verdict();
    assert!(leaderships.iter().any(|led| led.term == next.term));
}

#[test]
fn a_leader_whose_majority_is_killed_steps_down_and_somebody_leads_when_it_is_back() {
    let (mut crew, leader) = crew(true);
    let others = [0, 1, 2].into_iter().filter(|&number| number != leader.machine);
    others.clone().for_each(|number| crew.kill(number));
    assert_eq!(crew.lost(&leader).text("reason"), "lapsed");
    for number in others {
        crew.start(number);
    }
    crew.leader_above(leader.term);
    crew.verdict();
}

#[test]
fn all_are_killed_at_once_and_the_group_goes_on_where_it_was() {
    let (mut crew, leader) = crew(true);
    (0..3).for_each(|number| crew.kill(number));
    for number in 0..3 {
        crew.start(number);
    }
    assert!(crew.leader_above(leader.term).term > leader.term);
    crew.verdict();
}
