//! A process that is stopped in the middle of a write keeps the lock of the file: of SQLite only.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use tenure_testkit::freeze_inside_a_write;

use super::stage::{Stage, lives, now, until};
use super::witness;

const TTL: &str = "2s";

#[test]
fn a_leader_that_is_stopped_inside_a_write_is_succeeded() {
    let stage = Stage::new();
    let mut first = stage.witness("alpha", &["--ttl", TTL]);
    let beat = stage.beat_of("alpha", 0);
    let _second = stage.witness("beta", &["--ttl", TTL]);
    freeze_inside_a_write(first.pid(), stage.place().file());
    stage.beat_of("beta", 0);
    assert!(!lives(beat.pid));
    assert_eq!(first.end().signal(), Some(Signal::KILL.as_raw()));
    first.until_said("was stopped past its lease while it held the write lock of");
    witness::no_overlap(&stage.log());
}

/// It holds nothing but the lock, and the leader waits for that.
#[test]
fn a_candidate_that_is_stopped_inside_a_write_does_not_keep_others_from_leading() {
    let stage = Stage::new();
    let _first = stage.witness("alpha", &["--ttl", TTL]);
    stage.beat_of("alpha", 0);
    let mut second = stage.witness("beta", &["--ttl", TTL]);
    freeze_inside_a_write(second.pid(), stage.place().file());
    assert_eq!(second.end().signal(), Some(Signal::KILL.as_raw()));
    // Whether it was in time for the term of the leader or not: it leads from now on.
    let freed = now();
    stage.beat_of("alpha", freed);
    witness::no_overlap(&stage.log());
}

/// `tenure node` has no guardian: here others can only say what is wrong, without being asked to say more.
#[test]
fn whoever_waits_for_a_stopped_node_says_which_process_it_is_and_what_to_do() {
    let stage = Stage::new();
    let words = ["node", "--election", "nightly", "--listen", "127.0.0.1:0", "--ttl", TTL];
    let first = stage.start("alpha", &words, |_| {});
    first.until_said("serves http");
    let second = stage.witness("beta", &["--ttl", TTL]);
    freeze_inside_a_write(first.pid(), stage.place().file());
    let pid = first.pid();
    second.until_said(&format!("process {pid} (tenure) holds its write lock and is stopped"));
    second.until_said(&format!("`kill -KILL {pid}`"));

    first.signal(Signal::KILL);
    let freed = now();
    stage.beat_of("beta", freed);
    until("it is gone", || !lives(pid));
}
