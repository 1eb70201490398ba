//! Stopping the program, and everything that descends from it.

use rustix::process::Signal;

use super::stage::{NEVER, Stage, lives, sh, until, written};
use super::witness::{self, DEAF};

/// The numbers in a file, one per line.
fn pids(stage: &Stage, name: &str, count: usize) -> Vec<u32> {
    until("all processes have written their numbers", || {
        let text = std::fs::read_to_string(stage.path(name)).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() >= count).then_some(pids)
    })
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_after_its_grace() {
    let stage = Stage::new();
    let mut run =
        stage.run_with("alpha", &["--ttl", NEVER, "--grace", "300ms"], &witness::command(), |command| {
            command.env(DEAF, "1");
        });
    let beat = stage.beat_of("alpha", 0);
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 137);
    assert!(!lives(beat.pid));
    let words = "the program was ended by signal 9 (SIGKILL): it had not stopped in time\n";
    assert!(run.said().contains(words), "{}", run.said());
}

#[test]
fn whoever_asks_twice_does_not_wait_for_the_grace() {
    let stage = Stage::new();
    let mut run =
        stage.run_with("alpha", &["--ttl", NEVER, "--grace", "1h"], &witness::command(), |command| {
            command.env(DEAF, "1");
        });
    stage.beat_of("alpha", 0);
    run.signal(Signal::INT);
    // The second is another signal, so that the two cannot melt into one.
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 137);
}

#[test]
fn nothing_of_the_tree_is_left_wherever_it_went() {
    nothing_is_left("auto");
}

/// Where a control group can be made, the kernel would do it all: so once without.
#[test]
fn nothing_of_the_tree_is_left_without_a_control_group() {
    nothing_is_left("never");
}

fn nothing_is_left(cgroup: &str) {
    let stage = Stage::new();
    let file = stage.path("pids").display().to_string();
    // A child, a child in a session of its own, and a daemon whose parent is gone.
    let script = format!(
        "echo $$ >> {file}
         sh -c 'trap \"\" TERM; echo $$ >> {file}; while :; do sleep 0.1; done' &
         setsid sh -c 'trap \"\" TERM; echo $$ >> {file}; while :; do sleep 0.1; done' &
         (setsid sh -c 'trap \"\" TERM; echo $$ >> {file}; while :; do sleep 0.1; done' &)
         wait"
    );
    let mut run = stage.run("alpha", &["--ttl", NEVER, "--grace", "200ms", "--cgroup", cgroup], &sh(&script));
    let all = pids(&stage, "pids", 4);
    assert!(all.iter().all(|pid| lives(*pid)));
    run.signal(Signal::TERM);
    run.end();
    assert_eq!(all.iter().filter(|pid| lives(**pid)).count(), 0, "{all:?}");
}

#[test]
fn what_a_program_leaves_behind_is_ended_before_the_lease_is_given_back() {
    let stage = Stage::new();
    let file = stage.path("pids").display().to_string();
    let script = format!(
        "(setsid sh -c 'trap \"\" TERM; echo $$ >> {file}; while :; do sleep 0.1; done' &)
         while ! test -s {file}; do sleep 0.01; done; exit 3"
    );
    let mut run = stage.run("alpha", &["--ttl", NEVER, "--grace", "200ms"], &sh(&script));
    assert_eq!(run.code(), 3, "the program's own code");
    assert!(!lives(pids(&stage, "pids", 1)[0]));
}

#[test]
fn a_program_that_stops_in_order_keeps_its_code_and_its_time() {
    let stage = Stage::new();
    let ready = stage.path("ready").display().to_string();
    let script = format!(
        "trap 'sleep 0.3; echo done; exit 5' TERM; echo ready > {ready}; while :; do sleep 0.05; done"
    );
    let mut run = stage.run("alpha", &["--ttl", NEVER], &sh(&script));
    written(&stage.path("ready"));
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 5);
    assert!(run.said().contains("tenure: the program ended with code 5\n"), "{}", run.said());
    assert_eq!(stage.printed("alpha"), "done\n");
}
