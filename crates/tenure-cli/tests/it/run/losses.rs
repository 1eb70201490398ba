//! Leadership is lost, and the program is gone before anybody else leads.

use rustix::process::Signal;

use super::stage::{Stage, lives, now, signal, until};
use super::witness::{self, DEAF};

/// Waited for by most of these tests, and kept on a busy machine by whoever is to lead until something is done to it.
const TTL: &str = "6s";

fn deaf(stage: &Stage, node: &str, flags: &[&str]) -> super::stage::Running {
    let mut all = flags.to_vec();
    if !flags.contains(&"--ttl") {
        all.extend(["--ttl", TTL]);
    }
    stage.run_with(node, &all, &witness::command(), |command| {
        command.env(DEAF, "1");
    })
}

#[test]
fn the_program_of_a_stopped_supervisor_is_gone_before_the_successor_runs() {
    let stage = Stage::new();
    let first = deaf(&stage, "alpha", &[]);
    let beat = stage.beat_of("alpha", 0);
    let _second = stage.witness("beta", &["--ttl", TTL]);
    tenure_testkit::freeze(first.pid());
    stage.beat_of("beta", 0);
    assert!(!lives(beat.pid));
    // More where the machine let one of them lapse meanwhile.
    assert!(witness::no_overlap(&stage.log()).len() >= 2);
    // Awake again, it finds out and stands behind the other.
    first.signal(Signal::CONT);
    first.until_said(&format!("term {} of `nightly` is over", beat.term));
    first.until_said("waiting: `beta` leads");
}

#[test]
fn a_stopped_guardian_is_replaced_when_the_program_must_end() {
    let stage = Stage::new();
    let first = deaf(&stage, "alpha", &[]);
    let beat = stage.beat_of("alpha", 0);
    signal(first.guardian(), Signal::STOP);
    stage.place().take_away();
    until("the program is gone", || (!lives(beat.pid)).then_some(()));
    first.until_said("the guardian does not answer");
    let back = now();
    stage.place().bring_back();
    let again = stage.beat_of("alpha", back);
    assert!(again.term > beat.term);
    witness::no_overlap(&stage.log());
}

#[test]
fn a_store_that_goes_away_while_leading_ends_the_program_and_its_return_starts_it_again() {
    let stage = Stage::new();
    // Long enough from the first renewal that fails to the end for a busy machine to tell of both.
    let first = deaf(&stage, "alpha", &["--ttl", "10s", "--renew-every", "200ms"]);
    let beat = stage.beat_of("alpha", 0);
    stage.place().take_away();
    until("the program is gone", || (!lives(beat.pid)).then_some(()));
    // Each of it in a line, without -v.
    first.until_said("the store does not answer, trying again: ");
    first.until_said("in jeopardy: unless the store answers within ");
    first.until_said("no renewal succeeded in time; stopping the program, then standing again");
    let back = now();
    stage.place().bring_back();
    stage.beat_of("alpha", back);
    first.until_said("the store answers again, after ");
    // More where the machine let one of them lapse meanwhile.
    assert!(witness::no_overlap(&stage.log()).len() >= 2);
}

#[test]
fn an_outage_of_the_store_is_told_as_long_as_it_was() {
    let stage = Stage::new();
    let _first = deaf(&stage, "alpha", &["--ttl", "6s"]);
    let beat = stage.beat_of("alpha", 0);
    stage.place().take_away();
    // Nothing is renewed from here on, so the lease ends within a ttl; and then nobody leads for two seconds more.
    let back = now() + 8_000_000_000;
    until("the program is gone", || (!lives(beat.pid)).then_some(()));
    until("the lease has been over for two seconds", || (now() > back).then_some(()));
    stage.place().bring_back();
    let again = stage.beat_of("alpha", back);
    let told = stage.explained(again.term);
    assert_eq!(
        (&told["previous_ended"], &told["previous_reason"]),
        (&"leader_lost".into(), &"lapsed".into())
    );
    let gap = told["gap_ms"].as_u64().unwrap();
    assert!(gap >= 2_000, "{told}");
    assert_eq!(told["gap_at_least_ms"], gap, "it is known when the lease ended: {told}");
    let why = told["previous_why"].as_str().unwrap();
    assert!(why.contains("longer than its ttl of 6") && why.contains("because the store was away"), "{why}");
    let said =
        stage.tenure().args(["explain", "nightly", "--term", &again.term.to_string()]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("\nNobody led for ") && !said.contains("at most"), "{said}");
}

#[test]
fn a_store_that_goes_away_while_waiting_is_waited_for() {
    let stage = Stage::new();
    let mut first = stage.witness("alpha", &["--ttl", TTL]);
    stage.beat_of("alpha", 0);
    let _second = stage.witness("beta", &["--ttl", TTL]);
    stage.place().take_away();
    first.signal(Signal::TERM);
    first.end();
    stage.place().bring_back();
    stage.beat_of("beta", 0);
    witness::no_overlap(&stage.log());
}

#[test]
fn who_is_to_exit_on_loss_does_so_with_75() {
    let stage = Stage::new();
    let mut first = deaf(&stage, "alpha", &["--exit-on-loss"]);
    stage.beat_of("alpha", 0);
    stage.place().take_away();
    assert_eq!(first.code(), 75);
    assert!(first.said().contains("leadership was lost"), "{}", first.said());
}

#[test]
fn a_deleted_election_ends_the_program_and_the_command() {
    let stage = Stage::new();
    // Who loses its term and stands again begins a deleted election anew.
    let mut first = stage.witness("alpha", &["--ttl", "1m", "--renew-every", "200ms"]);
    let beat = stage.beat_of("alpha", 0);
    let asked = stage.tenure().args(["delete", "nightly", "--force"]).output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    assert_eq!(first.code(), 1);
    assert!(!lives(beat.pid));
    assert!(first.said().contains("tenure delete"), "{}", first.said());
}
