//! A short torture on each store: `cargo xtask torture --store S` does the same at length.

use std::process::Command;

/// Long enough for some elections, and for most kinds of faults.
const SECONDS: &str = "25";

/// What the torture says, and whether it found that every promise was kept.
fn tortured(store: &str, flags: &[&str]) -> (String, bool) {
    let mut torture = Command::new(env!("CARGO_BIN_EXE_torture"));
    let done = torture.args(["--store", store, "--seconds", SECONDS]).args(flags).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (String::from_utf8(said).unwrap(), done.status.success())
}

fn keeps_every_promise(store: &str) {
    let (said, kept) = tortured(store, &[]);
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

/// Three coordinators and ten workers. The seed has everything in it that is done to them.
const DIVISION: [&str; 5] = ["--partitions", "--count", "100", "--seed", "8"];

#[test]
fn no_partition_has_two_owners_while_nodes_are_killed_stopped_and_restarted() {
    let (said, kept) = tortured("sqlite", &DIVISION);
    eprintln!("{said}");
    assert!(kept, "a promise was broken, or the torture could not be carried out");
    for deed in ["killed", "stopped", "restarted in good order"] {
        assert!(said.contains(deed), "nobody was {deed}");
    }
}

#[test]
fn a_partition_with_two_owners_is_found_out() {
    let (said, kept) = tortured("sqlite", &[DIVISION.as_slice(), &["--sabotage"]].concat());
    assert!(!kept && said.contains("VIOLATION overlap") && said.contains("in torture/work/"), "{said}");
}

#[test]
fn nodes_that_do_not_ask_their_check_are_found_out() {
    let (said, kept) = tortured("sqlite", &["--sabotage"]);
    assert!(!kept && said.contains("VIOLATION overlap"), "{said}");
}
