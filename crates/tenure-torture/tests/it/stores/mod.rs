//! A short torture on each store: `cargo xtask torture --store S` does the same at length.

use std::process::Command;

/// Enough for some elections, and for most kinds of faults: about ten seconds.
const STEPS: &str = "30";
/// What is done, and in which order. `cargo xtask torture` takes another seed every time.
const SEED: &str = "19";

/// What the torture says, and whether it found that every promise was kept.
fn tortured(store: &str, flags: &[&str]) -> (String, bool) {
    let mut torture = Command::new(env!("CARGO_BIN_EXE_torture"));
    let done = torture.args(["--store", store]).args(flags).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (String::from_utf8(said).unwrap(), done.status.success())
}

fn keeps_every_promise(store: &str) {
    let (said, kept) = tortured(store, &["--steps", STEPS, "--seed", SEED]);
    eprintln!("{said}");
    assert!(kept, "a promise was broken on {store}, or the torture could not be carried out");
}

#[test]
fn every_promise_is_kept_on_sqlite() {
    keeps_every_promise("sqlite");
}

#[test]
fn every_promise_is_kept_on_postgresql() {
    keeps_every_promise("postgres");
}

#[test]
fn every_promise_is_kept_on_mysql() {
    keeps_every_promise("mysql");
}

#[test]
fn every_promise_is_kept_on_zookeeper() {
    keeps_every_promise("zookeeper");
}

#[test]
fn every_promise_is_kept_by_a_raft_group() {
    keeps_every_promise("raft");
}

/// Three coordinators and ten workers. The seed kills and stops workers before it is their turn to be restarted.
const DIVISION: [&str; 5] = ["--partitions", "--count", "100", "--seed", "45"];
/// Sabotage ends as soon as there is something to be found; this is when it would be given up.
const SABOTAGE: [&str; 3] = ["--sabotage", "--seconds", "600"];

#[test]
fn no_partition_has_two_owners_while_nodes_are_killed_stopped_and_restarted() {
    let (said, kept) = tortured("sqlite", &[DIVISION.as_slice(), &["--steps", "16"]].concat());
    eprintln!("{said}");
    assert!(kept, "a promise was broken, or the torture could not be carried out");
    for deed in ["killed", "stopped", "restarted in good order"] {
        assert!(said.contains(deed), "nobody was {deed}");
    }
}

#[test]
fn a_partition_with_two_owners_is_found_out() {
    let (said, kept) = tortured("sqlite", &[DIVISION.as_slice(), &SABOTAGE].concat());
    assert!(!kept && said.contains("VIOLATION overlap") && said.contains("in torture/work/"), "{said}");
}

#[test]
fn nodes_that_do_not_ask_their_check_are_found_out() {
    let (said, kept) = tortured("sqlite", &[SABOTAGE.as_slice(), &["--seed", SEED]].concat());
    assert!(!kept && said.contains("VIOLATION overlap"), "{said}");
}
