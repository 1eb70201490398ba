//! What happened, and what happens: events and watch.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use super::stage::{Reaped, Said, Stage, fields, until};

fn kinds(said: &Said) -> Vec<String> {
    said.lines().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_history_is_told_oldest_first() {
    let stage = Stage::new();
    stage.leads("alpha").leaves();
    let said = stage.tenure(&["events", "--json"]).done();
    assert_eq!(
        kinds(&said),
        ["node_joined", "election_started", "leader_elected", "leader_resigned", "node_left"]
    );
    let elected = &said.lines()[2];
    assert_eq!(fields(elected), ["data", "election", "event", "id", "node", "term", "time"]);
    assert_eq!((&elected["node"], &elected["election"]), (&json!("alpha"), &json!("nightly")));
    assert!(elected["data"].is_object());
    let text = stage.tenure(&["events"]).done().out;
    let line = text.lines().nth(2).unwrap();
    assert!(line.ends_with("Z  leader_elected      nightly       alpha           term 1"), "{line}");
    assert!(text.lines().next().unwrap().contains("  hostname="), "{text}");
}

#[test]
fn a_part_of_the_history_can_be_asked_for() {
    let stage = Stage::new();
    stage.leads("alpha").leaves();
    let ask = |arguments: &[&str]| {
        let words: Vec<_> = ["events", "--json"].iter().chain(arguments).copied().collect();
        kinds(&stage.tenure(&words).done())
    };
    assert_eq!(ask(&["--election", "nightly"]), ["election_started", "leader_elected", "leader_resigned"]);
    assert_eq!(ask(&["-n", "2"]), ["leader_resigned", "node_left"]);
    assert_eq!(ask(&["--since", "3"]), ["leader_resigned", "node_left"]);
    assert_eq!(ask(&["--since", "1h", "-n", "1"]), ["node_left"]);
    assert_eq!(ask(&["--since", "2100-01-01T00:00:00Z"]), [""; 0]);
    assert_eq!(ask(&["--since", "2001-01-01T00:00:00Z"]).len(), 5);
    stage.tenure(&["events", "--since", "yesterday"]).refused(2, "an age such as 90m");
}

#[test]
fn who_follows_is_told_as_things_happen() {
    let stage = Stage::new();
    let alpha = stage.leads("alpha");
    let follows = stage.spawn(&["events", "--follow", "--json", "--election", "nightly"]);
    assert_eq!(follows.json()["event"], "election_started");
    assert_eq!(follows.json()["event"], "leader_elected");
    alpha.leaves();
    let resigned = follows.json();
    assert_eq!((&resigned["event"], &resigned["node"]), (&json!("leader_resigned"), &json!("alpha")));
    stage.leads("alpha").leaves();
    assert_eq!(follows.json()["term"], 2);
}

#[test]
fn nobody_is_told_a_thing_twice_or_out_of_order() {
    let stage = Stage::new();
    let follows = stage.spawn(&["events", "--follow", "--json"]);
    for _ in 0..5 {
        stage.leads("alpha").leaves();
    }
    let expected = stage.tenure(&["events", "--json"]).done().lines();
    let told: Vec<_> = expected.iter().map(|_| follows.json()).collect();
    assert_eq!(told, expected);
}

#[test]
fn a_stream_ends_quietly_when_its_reader_does_though_nothing_happens() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    for arguments in [["events", "--follow"], ["watch", "nightly"]] {
        let child = stage.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = Reaped(child.unwrap());
        // As `head -1` does.
        let mut first = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.contains("alpha"), "{first}");
        assert_eq!(child.code(), Some(0), "{arguments:?}");
        let mut complaint = String::new();
        child.0.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!(complaint, "", "{arguments:?}");
    }
}

#[test]
fn who_follows_outlives_an_outage_of_the_store_and_says_so_once() {
    let stage = Stage::new();
    stage.leads("alpha").leaves();
    let follows = stage.spawn(&["events", "--follow", "--json", "-n", "1"]);
    assert_eq!(follows.json()["event"], "node_left");
    let (here, away) = (stage.directory.path().join("tenure.db"), stage.directory.path().join("away.db"));
    std::fs::rename(&here, &away).unwrap();
    assert!(follows.complaint().contains("waiting for it to come back"));
    std::fs::rename(&away, &here).unwrap();
    assert!(follows.complaint().contains("the store is back"));
    stage.leads("beta").leaves();
    assert_eq!(follows.json()["node"], "beta");
}

#[test]
fn who_watches_sees_the_present_leader_and_then_every_change() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.leads("alpha"), stage.stands("beta"));
    stage.until_standing(&["beta"]);
    let watches = stage.spawn(&["watch", "nightly"]);
    assert!(watches.line().ends_with("Z  alpha leads under term 1"));
    alpha.leaves();
    // By one write, so that nobody led at no time.
    assert!(watches.line().ends_with("Z  beta leads under term 2 (alpha's term 1 is over: resigned)"));
    beta.leaves();
    assert!(watches.line().ends_with("Z  nobody leads (beta's term 2 is over: resigned)"));
}

#[test]
fn who_follows_an_election_that_is_not_there_yet_is_told_so() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    let words = "no election `nihgtly`; did you mean `nightly`? known are nightly; waiting for its first ";
    for arguments in [&["watch", "nihgtly"][..], &["events", "--follow", "--election", "nihgtly"]] {
        let follows = stage.spawn(arguments);
        let told = follows.complaint();
        assert!(told.contains(words), "{told}");
    }
}

#[test]
fn who_watches_in_json_gets_an_object_per_change() {
    let stage = Stage::new();
    let watches = stage.spawn(&["watch", "nightly", "--json"]);
    let nobody = watches.json();
    assert_eq!(fields(&nobody), ["election", "leader_id", "reason", "term", "time"]);
    assert!(nobody["leader_id"].is_null());
    let alpha = stage.leads("alpha");
    let leads = watches.json();
    assert_eq!((&leads["leader_id"], &leads["term"]), (&json!("alpha"), &json!(1)));
    alpha.leaves();
    let nobody = watches.json();
    assert_eq!((&nobody["leader_id"], &nobody["reason"]), (&json!(null), &json!("resigned")));
}

#[test]
fn who_watches_sees_a_leader_lapse_though_nobody_takes_over() {
    let stage = Stage::new();
    let alpha = stage.ghost("alpha", Duration::from_secs(2));
    let watches = stage.spawn(&["watch", "nightly"]);
    let mut first = None;
    until("the present leader should be told", || {
        alpha.renews();
        first = watches.try_line();
        first.is_some()
    });
    assert!(first.unwrap().ends_with("alpha leads under term 1"));
    // It renews no more.
    assert!(watches.line().ends_with("nobody leads (alpha's term 1 is over: lapsed)"));
    let _beta = stage.leads("beta");
    assert!(watches.line().ends_with("beta leads under term 2"));
}
