//! Planned changes: resign, transfer, delete.

use std::time::Duration;

use serde_json::json;
use tenure::Node;

use super::stage::{Player, Stage, until};

/// Alpha leads, beta and gamma wait.
fn three() -> (Stage, [Player; 3]) {
    let stage = Stage::new();
    let alpha = stage.leads("alpha");
    let beta = stage.stands("beta");
    stage.until_standing(&["beta"]);
    let gamma = stage.stands("gamma");
    stage.until_standing(&["beta", "gamma"]);
    (stage, [alpha, beta, gamma])
}

#[test]
fn a_leader_that_is_asked_to_resign_makes_way_for_the_first_in_line() {
    let (stage, _players) = three();
    let said = stage.tenure(&["resign", "nightly"]).done();
    assert_eq!(said.out, "alpha gave up term 1; beta leads under term 2\n");
    assert_eq!(stage.leader(), Some((String::from("beta"), 2)));
}

#[test]
fn a_leader_without_a_successor_resigns_all_the_same() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    let said = stage.tenure(&["resign", "nightly"]).done();
    // It may stand again before we look.
    let after = said.out.strip_prefix("alpha gave up term 1; ").unwrap();
    let expected = ["nobody leads, since no candidate stands\n", "alpha leads under term 2\n"];
    assert!(expected.contains(&after), "{said:?}");
}

#[test]
fn a_resignation_in_json_tells_both_leaders() {
    let (stage, _players) = three();
    let said = stage.tenure(&["resign", "nightly", "--json"]).done();
    let expected = json!({
        "election": "nightly", "previous_leader": "alpha", "previous_term": 1, "leader_id": "beta", "term": 2
    });
    assert_eq!(said.json(), expected);
}

#[test]
fn leadership_is_transferred_to_the_candidate_that_was_named() {
    let (stage, _players) = three();
    let said = stage.tenure(&["transfer", "nightly", "--to", "gamma"]).done();
    assert_eq!(said.out, "alpha gave up term 1; gamma leads under term 2\n");
    assert_eq!(stage.tenure(&["leader", "nightly"]).done().out, "gamma\n");
}

#[test]
fn nobody_is_handed_an_election_that_it_does_not_stand_for() {
    let (stage, _players) = three();
    stage
        .tenure(&["transfer", "nightly", "--to", "delta"])
        .refused(1, "delta does not stand for `nightly`; standing are beta, gamma");
    assert_eq!(stage.leader(), Some((String::from("alpha"), 1)));
}

#[test]
fn a_transfer_to_the_node_that_leads_already_is_done() {
    let (stage, _players) = three();
    let said = stage.tenure(&["transfer", "nightly", "--to", "alpha"]).done();
    assert_eq!(said.out, "alpha leads `nightly` already, under term 1\n");
    let said = stage.tenure(&["transfer", "nightly", "--to", "alpha", "--json"]).done().json();
    assert_eq!((&said["leader_id"], &said["term"]), (&json!("alpha"), &json!(1)));
    assert_eq!(stage.leader(), Some((String::from("alpha"), 1)));
}

#[test]
fn nobody_can_resign_where_nobody_leads() {
    let stage = Stage::new();
    stage.leads("alpha").leaves();
    stage.tenure(&["resign", "nightly"]).refused(1, "nobody leads `nightly`");
    stage.tenure(&["transfer", "nightly", "--to", "beta"]).refused(1, "nobody leads `nightly`");
}

#[test]
fn whoever_waits_for_work_to_stop_is_told_so_and_the_work_is_waited_for() {
    let stage = Stage::new();
    let minute = Duration::from_secs(60);
    let alpha = stage.stands_as(Node::builder("alpha").ttl(minute).grace(minute));
    stage.until_leads("alpha");
    let _beta = stage.stands("beta");
    stage.until_standing(&["beta"]);
    alpha.is_busy();
    stage
        .tenure(&["resign", "nightly", "--timeout", "100ms"])
        .refused(1, "alpha still leads under term 1; it was asked");
    let mut resigns = stage.spawn(&["resign", "nightly"]);
    assert_eq!(resigns.complaint(), "tenure: waiting for alpha to stop its work…");
    assert_eq!(stage.leader(), Some((String::from("alpha"), 1)));
    alpha.is_done();
    assert_eq!(resigns.line(), "alpha gave up term 1; beta leads under term 2");
    assert_eq!(resigns.code(), Some(0));
}

#[test]
fn an_election_that_is_led_is_deleted_only_by_force() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    stage.tenure(&["delete", "nightly"]).refused(1, "alpha leads it; --force ends it all the same");
    assert_eq!(stage.leader(), Some((String::from("alpha"), 1)));
    let said = stage.tenure(&["delete", "nightly", "--force"]).done();
    let told = "nightly is ended; alpha is told to stop, and gives its term up when it has; a node that is started \
                for it later, or stands again by itself, begins it anew\n";
    assert_eq!(said.out, told);
    until("the leader should stop by itself", || stage.leader().is_none());
    stage.tenure(&["delete", "nightly"]).refused(1, "`nightly` has ended already");
}

#[test]
fn an_election_that_is_free_is_deleted_without_force() {
    let stage = Stage::new();
    stage.leads("alpha").leaves();
    let said = stage.tenure(&["delete", "nightly", "--json"]).done();
    assert_eq!(said.json(), json!({"election": "nightly", "deleted": true, "leader_id": null}));
}
