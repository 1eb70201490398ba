//! What else goes wrong on a machine.

use std::process::Stdio;

use rustix::process::Signal;

use super::stage::{NEVER, Stage, lives, sh, signal, until, written};
use super::witness;

#[cfg(feature = "server-tests")]
/// Where Debian's `faketime` keeps its library, whatever the machine is called.
fn faketime() -> String {
    let found = std::process::Command::new("dpkg").args(["-L", "libfaketime"]).output().unwrap();
    let listed = String::from_utf8(found.stdout).unwrap();
    let library = listed.lines().find(|line| line.ends_with("libfaketimeMT.so.1"));
    library.expect("`cargo xtask setup` installs faketime").to_owned()
}

#[cfg(feature = "server-tests")]
#[test]
fn a_wall_clock_that_leaps_ends_the_term_and_the_node_stands_again() {
    let stage = Stage::new();
    let clock = stage.path("clock");
    std::fs::write(&clock, "+0").unwrap();
    let run = stage.run_with("alpha", &["--ttl", "20s"], &witness::command(), |command| {
        command
            .env("LD_PRELOAD", faketime())
            .env("FAKETIME_TIMESTAMP_FILE", &clock)
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    });
    let beat = stage.beat_of("alpha", 0);
    std::fs::write(&clock, "+1h").unwrap();
    run.until_said("the wall clock leapt");
    until("the program of the first term is gone", || (!lives(beat.pid)).then_some(()));
    let again = stage.beat_of("alpha", beat.at + 1);
    assert!(again.term >= beat.term);
    until("it runs under another term", || {
        witness::beats(&stage.log()).iter().any(|beat| beat.term == 2).then_some(())
    });
    assert_eq!(witness::no_overlap(&stage.log()), [1, 2]);
}

#[test]
fn a_hang_up_reaches_the_program_and_the_command_ends_with_it() {
    let stage = Stage::new();
    let mut run = stage.run("alpha", &["--ttl", NEVER], &sh("echo here; sleep 1000"));
    until("it runs", || stage.printed("alpha").contains("here").then_some(()));
    run.signal(Signal::HUP);
    assert_eq!(run.code(), 128 + 1, "the program took it as its end");
}

/// Without a terminal (cron, a service, a container) whoever starts the command is in an orphaned process group with
/// it. If a member of that ends whose parent is elsewhere, and another one is stopped, the kernel hangs up on all.
#[test]
fn a_stopped_command_without_a_terminal_costs_its_caller_nothing() {
    let stage = Stage::new();
    let (pid, hung_up) = (stage.path("pid"), stage.path("hung-up"));
    let script =
        format!("trap 'echo > {}' HUP; \"$@\" & echo $! > {}; wait; wait", hung_up.display(), pid.display());
    let mut caller = std::process::Command::new("setsid");
    caller.args(["sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_tenure"), "run", "--election", "nightly"]);
    caller.args(["--node", "alpha", "--ttl", "1s", "--"]).args(witness::command());
    caller.env("TENURE_STORE", stage.place().url()).env(witness::LOG, stage.log());
    let mut caller = caller.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let beat = stage.beat_of("alpha", 0);
    let command = written(&pid).trim().parse().unwrap();
    signal(command, Signal::STOP);
    until("the program is gone", || (!lives(beat.pid)).then_some(()));
    signal(command, Signal::CONT);
    until("it runs again", || {
        witness::beats(&stage.log()).iter().any(|later| later.pid != beat.pid).then_some(())
    });
    // Whatever is found out, nobody is left behind.
    signal(command, Signal::TERM);
    caller.wait().unwrap();
    assert!(!hung_up.exists(), "the caller was hung up on");
}

/// A real terminal, whose window is closed: the kernel hangs up, and there is nobody to write to any more.
#[test]
fn a_terminal_that_is_closed_ends_the_program_and_frees_the_lease() {
    let stage = Stage::new();
    let words = [
        env!("CARGO_BIN_EXE_tenure"),
        "run",
        "--election",
        "nightly",
        "--node",
        "alpha",
        "--ttl",
        NEVER,
        "--",
    ];
    let line = [words.map(String::from).to_vec(), witness::command()].concat().join(" ");
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).env("TENURE_STORE", stage.place().url());
    terminal.env(witness::LOG, stage.log()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut terminal = terminal.spawn().unwrap();
    let beat = stage.beat_of("alpha", 0);
    terminal.kill().unwrap();
    terminal.wait().unwrap();
    until("the program is gone", || (!lives(beat.pid)).then_some(()));
    until("the lease is free", || {
        let leader = stage.tenure().args(["leader", "nightly"]).output().unwrap();
        (leader.status.code() == Some(1)).then_some(())
    });
}

#[test]
fn a_program_that_outlives_a_hang_up_is_not_ended_by_it() {
    let stage = Stage::new();
    let (ready, heard) = (stage.path("ready"), stage.path("heard"));
    let script = format!(
        "trap 'echo heard > {}' HUP; echo ready > {}; while :; do sleep 0.05; done",
        heard.display(),
        ready.display()
    );
    let mut run = stage.run("alpha", &["--ttl", NEVER], &sh(&script));
    written(&ready);
    run.signal(Signal::HUP);
    written(&heard);
    assert!(run.child.try_wait().unwrap().is_none(), "{}", run.said());
    run.signal(Signal::TERM);
    run.end();
}

#[test]
fn nohup_keeps_a_waiting_command_from_the_hang_up() {
    let stage = Stage::new();
    let _first = stage.witness("alpha", &["--ttl", NEVER]);
    let said = stage.path("nohup.said");
    let mut command = std::process::Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_tenure"));
    command.args(["run", "--election", "nightly", "--node", "beta", "--ttl", NEVER, "--store"]);
    command.arg(stage.place().url()).args(["--", "true"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(std::fs::File::create(&said).unwrap());
    let mut child = command.spawn().unwrap();
    until("it waits", || std::fs::read_to_string(&said).unwrap().contains("waiting:").then_some(()));
    super::stage::signal(child.id(), Signal::HUP);
    super::stage::signal(child.id(), Signal::TERM);
    let code = until("it ends", || child.try_wait().unwrap()).code();
    assert_eq!(code, Some(143), "ended by the second signal, not by the first");
}

#[test]
fn nobody_who_listens_is_no_reason_to_stop() {
    let stage = Stage::new();
    let mut run =
        stage.run_with("alpha", &["--ttl", NEVER, "--restart", "never"], &sh("exit 4"), |command| {
            // A pipe whose reader is gone.
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            command.stderr(writer).stdin(Stdio::null());
        });
    assert_eq!(run.code(), 4);
}

#[test]
fn a_store_that_is_not_there_yet_is_waited_for() {
    let stage = Stage::new();
    // Held by somebody else: it cannot be set up.
    let held = rusqlite::Connection::open(stage.path("tenure.db")).unwrap();
    held.execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE; CREATE TABLE mine (x);").unwrap();
    let mut run = stage.run("alpha", &["--ttl", NEVER], &sh("exit 0"));
    run.until_said("waiting for the store");
    held.execute_batch("ROLLBACK").unwrap();
    drop(held);
    assert_eq!(run.code(), 0);
}

#[test]
fn json_is_one_object_per_line_with_the_names_of_the_events() {
    let stage = Stage::new();
    let mut run = stage.run("alpha", &["--ttl", NEVER, "--json"], &["true"]);
    assert_eq!(run.code(), 0);
    let said = run.said();
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["event"], "using_store");
    // A slow store is told of in between.
    let elected = lines.iter().find(|line| line["event"] == "leader_elected").unwrap();
    assert_eq!(elected["election"], "nightly");
    assert_eq!(elected["node"], "alpha");
    assert_eq!(elected["term"], 1);
}
