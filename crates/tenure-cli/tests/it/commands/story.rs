//! The story of a term: explain.

use std::time::Duration;

use serde_json::json;

use super::stage::{Stage, fields};

#[test]
fn a_term_that_lasts_is_told_with_whom_it_followed_and_why() {
    let stage = Stage::new();
    let (_alpha, _beta) = (stage.leads("alpha"), stage.stands("beta"));
    stage.until_standing(&["beta"]);
    stage.tenure(&["transfer", "nightly", "--to", "beta"]).done();
    let said = stage.tenure(&["explain", "nightly"]).done();
    assert!(said.out.starts_with("beta was elected for nightly under term 2 at "), "{said:?}");
    assert!(said.out.contains("\nBefore it, alpha led under term 1, until "), "{said:?}");
    assert!(said.out.contains(": it resigned (asked to make way for beta).\n"), "{said:?}");
    assert!(said.out.contains("\nThe lease was passed on to it by the write that freed it.\n"), "{said:?}");
    assert!(said.out.contains("\nIt still leads, "), "{said:?}");
    assert!(
        said.out.contains("transfer_requested  nightly       alpha           term 1    to=beta\n"),
        "{said:?}"
    );
}

#[test]
fn a_term_in_json_has_the_gap_before_it_and_how_it_ended() {
    let stage = Stage::new();
    stage.leads("alpha").leaves();
    stage.leads("beta").leaves();
    let first = stage.tenure(&["explain", "nightly", "--term", "1", "--json"]).done().json();
    assert_eq!((&first["leader_id"], &first["ended_by"]), (&json!("alpha"), &json!("leader_resigned")));
    assert_eq!((&first["previous_leader"], &first["gap_ms"]), (&json!(null), &json!(null)));
    let second = stage.tenure(&["explain", "nightly", "--json"]).done().json();
    assert_eq!((&second["term"], &second["previous_term"]), (&json!(2), &json!(1)));
    assert_eq!(second["previous_ended"], "leader_resigned");
    assert!(second["lasted_ms"].is_u64());
    for name in ["election", "elected_at", "ended_at", "reason", "events"] {
        assert!(fields(&second).contains(&name), "{name}");
    }
    // What the command says is what the history says.
    let events = stage.tenure(&["events", "--json", "--election", "nightly"]).done().lines();
    let time = |kind: &str, term: u64| {
        let event = events.iter().find(|event| event["event"] == kind && event["term"] == term).unwrap();
        let text = event["time"].as_str().unwrap().to_owned();
        humantime::parse_rfc3339(&text).unwrap()
    };
    let gap = time("leader_elected", 2).duration_since(time("leader_resigned", 1)).unwrap();
    assert_eq!(u128::from(second["gap_ms"].as_u64().unwrap()), gap.as_millis());
    let told: Vec<_> =
        second["events"].as_array().unwrap().iter().map(|event| event["event"].as_str()).collect();
    let expected = ["leader_resigned", "leader_elected", "leader_changed", "leader_resigned"];
    assert_eq!(told, expected.map(Some));
}

#[test]
fn a_loss_is_told_with_its_reason() {
    let stage = Stage::new();
    let _ghost = stage.ghost("alpha", Duration::from_millis(100));
    let _beta = stage.leads("beta");
    let first = stage.tenure(&["explain", "nightly", "--term", "1", "--json"]).done().json();
    assert_eq!((&first["ended_by"], &first["reason"]), (&json!("leader_lost"), &json!("lapsed")));
    let said = stage.tenure(&["explain", "nightly"]).done();
    assert!(said.out.contains(": it was silent for its whole ttl.\nNobody led for at most "), "{said:?}");
    let second = stage.tenure(&["explain", "nightly", "--json"]).done().json();
    assert!(
        second["gap_ms"].as_u64().unwrap() >= 100,
        "from its last sign of life, so its whole ttl: {second}"
    );
}

#[test]
fn a_leader_that_lapsed_is_not_said_to_lead() {
    let stage = Stage::new();
    let _ghost = stage.ghost("alpha", Duration::from_millis(100));
    super::stage::until("a dead leader should lapse", || {
        stage.tenure(&["explain", "nightly"]).done().out.contains("nobody has taken over yet")
    });
}

#[test]
fn a_term_that_the_history_does_not_know_is_refused_with_those_it_does() {
    let stage = Stage::new();
    stage.leads("alpha").leaves();
    stage.leads("alpha").leaves();
    stage.tenure(&["explain", "nightly", "--term", "9"]).refused(1, "it tells of terms 1 to 2");
    stage.tenure(&["explain", "nightly", "--term", "many"]).refused(2, "invalid value 'many'");
}
