//! `tenure run --partitions`: a program for each partition, on one node at a time.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;

use super::stage::{NEVER, Running, Stage, children, lives, now, sh, signal, until};
use super::witness::{self, Beat, DEAF};

const LIST: &str = "jobs/parts";
const COUNT: u32 = 4;

/// Somebody who divides the work.
fn coordinator(stage: &Stage) -> Running {
    let tasks = format!("{LIST}={COUNT}");
    stage.start("boss", &["node", "--listen", "127.0.0.1:0", "--ttl", "2s", "--task-list", &tasks], |_| {})
}

/// A worker whose programs take no notice of SIGTERM.
fn deaf(stage: &Stage, node: &str, flags: &[&str]) -> Running {
    worker(stage, node, &[&["--grace", "300ms"], flags].concat(), &witness::command())
}

fn worker(stage: &Stage, node: &str, flags: &[&str], program: &[String]) -> Running {
    stage.start(node, &[&["run", "--partitions", LIST], flags].concat(), |command| {
        command.env(DEAF, "1").arg("--").args(program);
    })
}

/// The programs that have shown life since `at`, by partition.
fn programs(stage: &Stage, node: &str, at: u64) -> BTreeMap<u32, Beat> {
    let beats = witness::beats(&stage.log()).into_iter();
    let ours = beats.filter(|beat| beat.node == node && beat.at > at && lives(beat.pid));
    ours.map(|beat| (beat.partition.unwrap(), beat)).collect()
}

/// Waits until a node runs so many programs.
fn until_runs(stage: &Stage, node: &str, count: usize) -> BTreeMap<u32, Beat> {
    let since = now();
    until(&format!("{node} runs {count} programs"), || {
        Some(programs(stage, node, since)).filter(|programs| programs.len() == count)
    })
}

#[test]
fn a_worker_that_joins_takes_its_part_and_one_that_ends_gives_its_part_back() {
    let stage = Stage::new();
    let _boss = coordinator(&stage);
    let mut alpha = deaf(&stage, "alpha", &["--ttl", "20s"]);
    until_runs(&stage, "alpha", 4);
    let _beta = deaf(&stage, "beta", &["--ttl", "20s"]);
    until_runs(&stage, "beta", 2);
    let stayed = until_runs(&stage, "alpha", 2);
    alpha.signal(Signal::TERM);
    assert_eq!(alpha.code(), 128 + 15);
    assert!(stayed.values().all(|beat| !lives(beat.pid)), "{}", alpha.said());
    until_runs(&stage, "beta", 4);
    let changes = witness::no_overlap_of_partitions(&stage.log());
    assert_eq!(changes, (0..COUNT).map(|number| (number, 1)).collect(), "each has moved once");
    for event in ["is to be given up", "is released"] {
        assert!(alpha.said().contains(event), "{}", alpha.said());
    }
}

/// Not even a daemon outlives its partition here, and whatever belongs to the other partitions goes on.
#[test]
fn a_partition_that_is_revoked_is_given_away_when_nothing_of_its_tree_is_left() {
    let stage = Stage::new();
    let _boss = coordinator(&stage);
    let me = witness::command().join(" ");
    let daemon = format!("(setsid {me} &) ; exec {me}");
    let alpha = worker(&stage, "alpha", &["--ttl", "20s", "--grace", "300ms"], &sh(&daemon));
    let of = |number: Option<u32>| {
        let beats = witness::beats(&stage.log()).into_iter().filter(|beat| beat.node == "alpha");
        let beats = beats.filter(|beat| number.is_none_or(|number| beat.partition == Some(number)));
        beats.map(|beat| beat.pid).collect::<BTreeSet<u32>>()
    };
    until("programs and daemons run", || (of(None).len() == 8).then_some(()));
    let pinned = |number: &str, to: &str| {
        let asked = stage.tenure().args(["partitions", "move", LIST, number, "--to", to]).output().unwrap();
        assert!(asked.status.success(), "{asked:?}");
    };
    for (number, to) in [("0", "alpha"), ("1", "alpha"), ("2", "alpha"), ("3", "beta")] {
        pinned(number, to);
    }
    let _beta = deaf(&stage, "beta", &["--ttl", "20s"]);
    until_runs(&stage, "beta", 1);
    assert!(of(Some(3)).iter().all(|pid| !lives(*pid)), "{}", alpha.said());
    for other in 0..3 {
        assert!(of(Some(other)).iter().all(|pid| lives(*pid)), "{}", alpha.said());
    }
    let changes = witness::no_overlap_of_partitions(&stage.log());
    assert_eq!(changes, [(0, 0), (1, 0), (2, 0), (3, 1)].into());
}

#[test]
fn the_programs_of_a_killed_supervisor_are_gone_before_others_run_and_nobody_waits_for_its_ttl() {
    let stage = Stage::new();
    let _boss = coordinator(&stage);
    let alpha = deaf(&stage, "alpha", &["--ttl", NEVER]);
    let programs = until_runs(&stage, "alpha", 4);
    let _beta = deaf(&stage, "beta", &["--ttl", NEVER]);
    until_runs(&stage, "beta", 2);
    alpha.signal(Signal::KILL);
    until_runs(&stage, "beta", 4);
    assert!(programs.values().all(|beat| !lives(beat.pid)));
    witness::no_overlap_of_partitions(&stage.log());
}

#[test]
fn the_programs_of_a_stopped_supervisor_are_gone_before_others_run() {
    let stage = Stage::new();
    let _boss = coordinator(&stage);
    let alpha = deaf(&stage, "alpha", &["--ttl", "2s"]);
    let programs = until_runs(&stage, "alpha", 4);
    tenure_testkit::freeze(alpha.pid());
    let _beta = deaf(&stage, "beta", &["--ttl", "2s"]);
    until_runs(&stage, "beta", 4);
    assert!(programs.values().all(|beat| !lives(beat.pid)));
    // Awake again, it finds out, and has its part under other terms.
    alpha.signal(Signal::CONT);
    until_runs(&stage, "alpha", 2);
    witness::no_overlap_of_partitions(&stage.log());
}

#[test]
fn who_kills_a_keeper_ends_all_programs_and_they_start_again() {
    starts_again_without(|alpha| children(alpha.guardian())[0]);
}

#[test]
fn who_kills_the_guardian_ends_all_programs_and_they_start_again() {
    starts_again_without(Running::guardian);
}

/// With this process of a worker killed, its programs are gone before they run again.
fn starts_again_without(part: impl Fn(&Running) -> u32) {
    let stage = Stage::new();
    let _boss = coordinator(&stage);
    let alpha = deaf(&stage, "alpha", &["--ttl", "20s"]);
    let before = until_runs(&stage, "alpha", 4);
    signal(part(&alpha), Signal::KILL);
    until("all programs have ended", || before.values().all(|beat| !lives(beat.pid)).then_some(()));
    let after = until_runs(&stage, "alpha", 4);
    assert!(after.iter().all(|(number, beat)| beat.term == before[number].term), "it owned them all along");
    witness::no_overlap_of_partitions(&stage.log());
}

#[test]
fn a_program_that_fails_is_run_again_and_one_that_is_done_is_not() {
    let stage = Stage::new();
    let _boss = coordinator(&stage);
    let (seen, runs) = (stage.path("seen").display().to_string(), stage.path("runs").display().to_string());
    let script = format!(
        "test {{partition}} = 1 && {{ echo $TENURE_PARTITION >> {runs}; exit 3; }}
         env | grep '^TENURE_' | sort | grep -v TENURE_TERM > {seen}.{{partition}}; test $TENURE_TERM -gt 0"
    );
    let alpha = stage.start("alpha", &["run", "--partitions", LIST], |command| {
        command.env("TENURE_STORE_PASSWORD", "secret").arg("--").args(sh(&script));
    });
    until("it is run again", || std::fs::read_to_string(&runs).is_ok_and(|text| text.starts_with("1\n1\n")));
    alpha.until_said("the program of partition 2 of `jobs/parts` ended with code 0; the partition stays");
    let told = std::fs::read_to_string(format!("{seen}.2")).unwrap();
    let expected =
        "TENURE_NAMESPACE=default\nTENURE_NODE=alpha\nTENURE_PARTITION=2\nTENURE_TASK_LIST=jobs/parts\n";
    assert_eq!(told, expected);
    alpha.until_said("the program of partition 1 of `jobs/parts` ended with code 3; again in");
}

#[test]
fn whoever_waits_for_partitions_is_told_what_is_missing() {
    let stage = Stage::new();
    let mut alpha = deaf(&stage, "alpha", &["--ttl", "20s"]);
    alpha.until_said("waits for partitions from the leader of `coordinator`");
    alpha.until_said("there is no task list `jobs/parts`; `tenure partitions create jobs/parts");
    let made = stage.tenure().args(["partitions", "create", LIST, "--count", "1"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    alpha.until_said("nobody leads `coordinator`, so nobody divides the work");
    alpha.signal(Signal::INT);
    assert_eq!(alpha.code(), 128 + 2);
    let neither = stage.tenure().args(["run", "--", "true"]).output().unwrap();
    assert_eq!(neither.status.code(), Some(2));
    let said = String::from_utf8(neither.stderr).unwrap();
    assert!(said.contains("--election") || said.contains("--partitions"), "{said}");
}
