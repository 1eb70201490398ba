//! The command on a group of its own processes: two that run a program, and a witness.

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tenure_store::clock;
use tenure_testkit::patience::HANG;
use tenure_testkit::server::free_port;

fn tenure(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(words.split(' '));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENURE_")) {
        command.env_remove(name);
    }
    command
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Killed when dropped, with all that it guards: its guardian sees to that.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Group {
    peers: Vec<String>,
    directory: TempDir,
}

impl Group {
    fn new() -> Self {
        let peers = (0..3).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        Self { peers, directory: TempDir::new().unwrap() }
    }

    fn store(&self) -> String {
        format!("--store raft://{}", self.peers.join(","))
    }

    fn seat(&self, number: usize) -> String {
        let data = self.directory.path().join(number.to_string());
        format!("{} --data {} --raft-listen {}", self.store(), data.display(), self.peers[number])
    }

    fn start(&self, words: &str) -> Running {
        Running(tenure(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn run(&self, number: usize) -> Running {
        self.start(&format!("run {} --node n{number} --ttl 2s --election e -- sleep 600", self.seat(number)))
    }

    fn ask(&self, words: &str) -> (Option<i32>, String, String) {
        text(&tenure(&format!("{words} {}", self.store())).output().unwrap())
    }

    /// Asks until the answer is one that is looked for.
    fn until(&self, words: &str, mut good: impl FnMut(&str) -> bool) -> String {
        let end = clock::now() + HANG;
        loop {
            let (code, said, problem) = self.ask(words);
            if code == Some(0) && good(&said) {
                return said;
            }
            assert!(clock::now() < end, "{words}: {said}{problem}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn two_machines_and_a_witness_survive_the_loss_of_one() {
    two_survive_the_loss_of_one_with("witness");
}

#[test]
fn two_machines_and_a_node_that_never_leads_survive_the_loss_of_one() {
    two_survive_the_loss_of_one_with(
        "node --node poller --election e --ttl 2s --eligible=false --listen 127.0.0.1:0",
    );
}

fn two_survive_the_loss_of_one_with(third: &str) {
    let group = Group::new();
    let _third = group.start(&format!("{third} {}", group.seat(2)));
    let mut running = [Some(group.run(0)), Some(group.run(1))];
    let first = group.until("leader e", |_| true).trim().to_owned();
    let members = group.until("raft members --json", |said| said.lines().count() == 3);
    assert_eq!(members.matches("\"voter\":true").count(), 3, "{members}");
    assert_eq!(members.matches("\"leads\":true").count(), 1, "{members}");

    let number: usize = first.strip_prefix('n').unwrap().parse().unwrap();
    drop(running[number].take());
    let second = group.until("leader e", |said| said.trim() != first);
    assert!(["n0", "n1"].contains(&second.trim()), "{second}");
    let members = group.until("raft members --json", |said| said.contains("\"reached\":false"));
    assert_eq!(members.lines().count(), 3);
    let (code, said, _) = group.ask("check");
    assert!(code == Some(1) && said.contains("1 of 3 may be lost") && said.contains("not "), "{said}");
}

#[test]
fn a_group_of_one_is_grown_and_shrunk_by_the_command() {
    let group = Group::new();
    let witness = |number: usize| {
        let (peers, data) = (&group.peers[..=number], group.directory.path().join(number.to_string()));
        let (peers, own) = (peers.join(","), &group.peers[number]);
        group.start(&format!("witness --store raft://{peers} --data {} --raft-listen {own}", data.display()))
    };
    let members = |count: usize| {
        group.until("raft members --json", |said| said.matches("\"behind\":0").count() == count)
    };
    let _first = witness(0);
    members(1);
    let _second = witness(1);
    let second = &group.peers[1];
    assert!(group.until(&format!("raft add {second}"), |_| true).contains("votes now"));
    assert_eq!(members(2).matches("\"voter\":true").count(), 2);
    assert!(group.until("raft snapshot", |_| true).contains("every member writes a snapshot"));
    assert!(group.until(&format!("raft remove {second}"), |_| true).contains("belongs to the group no more"));
    assert!(!members(1).contains(second.as_str()));
}

#[test]
fn what_is_only_for_members_of_a_group_is_refused_elsewhere() {
    let refused = |words: &str| {
        let (code, _, problem) = text(&tenure(words).output().unwrap());
        assert_eq!(code, Some(2), "{words}: {problem}");
        problem
    };
    let other = "--store sqlite:/nowhere/x.db";
    assert!(refused(&format!("run {other} --data d --election e -- true")).contains("--data is for a store"));
    assert!(
        refused(&format!("leader e {other} --raft-plaintext")).contains("--raft-plaintext is for a store")
    );
    assert!(refused("witness --store raft://127.0.0.1:1").contains("--data DIR"));
    assert!(refused("leader e --store raft://h1:7101").contains("--raft-plaintext"));
}
