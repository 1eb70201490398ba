//! `tenure demo` from outside: its transcript, and that nothing is left behind however it ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tenure_testkit::patience::until;

use crate::terminal::Terminal;

/// Where nothing lapses but what something is done to, however busy the machine is.
const CALM: &str = "6s";
/// Where nobody minds who leads.
const BRIEF: &str = "2s";

fn demo(place: &Path, ttl: &str, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENURE_")) {
        command.env_remove(name);
    }
    command.args(["demo", "--ttl", ttl]).args(flags);
    command.env("TMPDIR", place).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn assert_nothing_is_left(place: &Path) {
    let left: Vec<_> = std::fs::read_dir(place).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "files are left behind: {left:?}");
    assert_eq!(nodes_of(place), [], "nodes are left behind");
}

/// Processes whose environment names this place: the demo's nodes, whoever their parent is.
fn nodes_of(place: &Path) -> Vec<Pid> {
    let wanted = place.to_str().unwrap().as_bytes().to_vec();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let read = |name: &str| std::fs::read(entry.path().join(name)).ok();
            let (environment, line) = (read("environ")?, read("cmdline")?);
            let is_node = line.split(|byte| *byte == 0).nth(1) == Some(b"node");
            let ours = environment.windows(wanted.len()).any(|part| part == wanted);
            (is_node && ours).then_some(pid)
        })
        .collect()
}

/// A demo that has said that somebody leads.
fn begun(place: &Path) -> Child {
    let mut child = demo(place, BRIEF, &["--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("elected")), "it ended before anybody was elected");
    // Read on, so that it is not the pipe that ends it.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn signal(child: &Child, which: Signal) {
    kill_process(Pid::from_child(child), which).unwrap();
}

#[test]
fn the_tour_does_everything_once_and_tells_how_long_each_failover_took() {
    let place = TempDir::new().unwrap();
    let output = demo(place.path(), CALM, &["--json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let steps: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = steps.iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "joined", "joined", "joined", "elected", "resign", "elected", "kill", "elected", "restored",
            "stop", "elected", "restored", "asked", "cut", "elected", "asked", "restored", "joined",
        ]
    );
    let elected: Vec<&Value> = steps.iter().filter(|step| step["step"] == "elected").collect();
    let terms: Vec<u64> = elected.iter().map(|step| step["term"].as_u64().unwrap()).collect();
    assert!(terms.is_sorted_by(|a, b| a < b), "terms rise: {terms:?}");
    // What was killed, stopped or cut off is waited for: a ttl from its last renewal. A lease is over when 15 % of the
    // ttl are left, so who still leads, however late its last renewal was, is waited for that long at least.
    let took: Vec<u64> = elected[1..].iter().map(|step| step["failover_ms"].as_u64().unwrap()).collect();
    assert!(took.len() == 4 && took[1..].iter().all(|millis| *millis >= 900), "{took:?}");
    assert_nothing_is_left(place.path());
}

#[test]
fn people_read_a_transcript() {
    let place = TempDir::new().unwrap();
    let output = demo(place.path(), CALM, &["--nodes", "2"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let parts = [
        "2 nodes on this machine",
        "has joined: http://127.0.0.1:",
        "leads under term ",
        "is asked to resign",
        "handed over in",
        "is killed (kill -9)",
        "failed over in",
        "is started again",
        "is stopped (SIGSTOP)",
        "goes on (SIGCONT)",
        "itself says that it does not lead",
        "is cut off from the store",
        "reaches the store again",
        "clara  has joined",
    ];
    let mut rest = text.as_str();
    for part in parts {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("`{part}` is missing in:\n{text}")).1;
    }
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    let place = TempDir::new().unwrap();
    let mut child = begun(place.path());
    // It goes on meanwhile, and may just have killed one.
    assert!(nodes_of(place.path()).len() >= 2);
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_nothing_is_left(place.path());
}

#[test]
fn the_nodes_die_with_a_demo_that_is_killed() {
    let place = TempDir::new().unwrap();
    let mut child = begun(place.path());
    assert!(nodes_of(place.path()).len() >= 2);
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    until("the nodes die", || nodes_of(place.path()).is_empty());
}

#[test]
fn a_key_that_cannot_act_says_why() {
    let place = TempDir::new().unwrap();
    let mut demo = Terminal::run("demo --ttl 2s", |command| {
        command.env("TMPDIR", place.path());
    });
    demo.shows(&["bring the killed back"]);
    for (key, why) in [("b", "no node is killed"), ("x", "`x` has no meaning here")] {
        demo.press(key);
        demo.shows(&[why]);
    }
    demo.quit();
    assert_nothing_is_left(place.path());
}
