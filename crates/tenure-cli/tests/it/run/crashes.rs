//! A crash costs no ttl: the kernel's word that a process is gone is proof. In all of these the ttl is
//! far longer than any test waits.

use rustix::process::Signal;

use super::stage::{NEVER, Stage, lives, signal, until};
use super::witness::{self, DEAF};

#[test]
fn when_the_program_is_killed_the_successor_runs_at_once() {
    let stage = Stage::new();
    let mut first = stage.witness("alpha", &["--ttl", NEVER]);
    let beat = stage.beat_of("alpha", 0);
    let _second = stage.witness("beta", &["--ttl", NEVER]);
    signal(beat.pid, Signal::KILL);
    stage.beat_of("beta", 0);
    assert_eq!(first.code(), 137);
    assert_eq!(witness::no_overlap(&stage.log()), [1, 2]);
    let killed = ["leader_lost", "program_failed", "its program was killed by signal 9 (SIGKILL)"];
    assert_eq!(stage.end_of(1), killed);
}

#[test]
fn when_the_supervisor_is_killed_its_guardian_ends_the_tree_and_then_closes_its_session() {
    let stage = Stage::new();
    let first = stage.run_with("alpha", &["--ttl", NEVER], &witness::command(), |command| {
        command.env(DEAF, "1");
    });
    let beat = stage.beat_of("alpha", 0);
    let guardian = first.guardian();
    let _second = stage.witness("beta", &["--ttl", NEVER]);
    first.signal(Signal::KILL);
    stage.beat_of("beta", 0);
    assert!(!lives(beat.pid));
    until("the guardian leaves", || (!lives(guardian)).then_some(()));
    assert_eq!(witness::no_overlap(&stage.log()), [1, 2]);
    // It has not resigned, and the history says who knew.
    let gone = ["leader_lost", "process_ended", "its process ended; its guardian noticed"];
    assert_eq!(stage.end_of(1), gone);
    let events = stage.tenure().args(["events"]).output().unwrap();
    let events = String::from_utf8(events.stdout).unwrap();
    let told = "reason=process_ended  witnessed=true  (its process ended; its guardian noticed)";
    assert_eq!(events.matches(told).count(), 2, "of the leader and of its node: {events}");
}

#[test]
fn when_a_waiting_supervisor_is_killed_its_session_is_closed() {
    let stage = Stage::new();
    let _first = stage.witness("alpha", &["--ttl", NEVER]);
    stage.beat_of("alpha", 0);
    let second = stage.witness("beta", &["--ttl", NEVER]);
    let guardian = second.guardian();
    second.signal(Signal::KILL);
    until("the guardian leaves", || (!lives(guardian)).then_some(()));
    let status = stage.tenure().args(["status", "nightly", "--json"]).output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("\"candidates\":[]"), "{status}");
}

#[test]
fn when_the_guardian_is_killed_the_program_ends_and_the_supervisor_resigns() {
    let stage = Stage::new();
    let mut first = stage.run_with("alpha", &["--ttl", NEVER], &witness::command(), |command| {
        command.env(DEAF, "1");
    });
    let beat = stage.beat_of("alpha", 0);
    let _second = stage.witness("beta", &["--ttl", NEVER]);
    signal(first.guardian(), Signal::KILL);
    assert_eq!(first.code(), 137);
    stage.beat_of("beta", 0);
    assert!(!lives(beat.pid));
    assert!(first.said().contains("the guardian was killed"), "{}", first.said());
    assert_eq!(witness::no_overlap(&stage.log()), [1, 2]);
    assert_eq!(stage.end_of(1)[..2], ["leader_lost", "program_failed"]);
}

#[test]
fn what_the_program_had_started_dies_with_a_killed_guardian_too() {
    let stage = Stage::new();
    let me = witness::command().join(" ");
    let script = format!("(setsid {me} &) ; exec {me}");
    let mut first = stage.run("alpha", &["--ttl", NEVER], &super::stage::sh(&script));
    let both = until("both of the tree run", || {
        let mut pids: Vec<u32> = witness::beats(&stage.log()).iter().map(|beat| beat.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        (pids.len() == 2).then_some(pids)
    });
    signal(first.guardian(), Signal::KILL);
    assert_eq!(first.code(), 137);
    assert!(both.iter().all(|pid| !lives(*pid)), "{both:?}");
}
