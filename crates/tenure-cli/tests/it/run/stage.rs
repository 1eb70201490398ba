//! A place with a store, and `tenure run` processes in it.
#![allow(dead_code, reason = "every store uses its own part of it")]

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tenure_store::clock;
pub use tenure_testkit::patience::until;

use super::place::Place;
use super::witness::{self, Beat, LOG};

/// A ttl that no test waits for: whatever happens within one happened without it.
pub const NEVER: &str = "1h";

pub struct Stage {
    directory: TempDir,
    place: Place,
}

/// A `tenure run`. Killed when dropped, with all that it guards.
pub struct Running {
    pub child: Child,
    pub node: String,
    said: PathBuf,
}

/// Whether a process is there, and no zombie.
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')))
}

pub fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

/// The direct children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|child| {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            let parent =
                stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            parent == Some(pid)
        })
        .collect()
}

impl Stage {
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let place = Place::new(super::STORE, directory.path());
        Self { directory, place }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The store.
    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn log(&self) -> PathBuf {
        self.path("witness.log")
    }

    /// The command, with this store, and nothing of ours in its environment.
    pub fn tenure(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENURE_")) {
            command.env_remove(name);
        }
        command
            .env("TENURE_STORE", self.place.url())
            .env(LOG, self.log())
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs a program for the election `nightly`.
    pub fn run<S: AsRef<OsStr>>(&self, node: &str, flags: &[&str], program: &[S]) -> Running {
        self.run_with(node, flags, program, |_| {})
    }

    pub fn run_with<S: AsRef<OsStr>>(
        &self,
        node: &str,
        flags: &[&str],
        program: &[S],
        change: impl FnOnce(&mut Command),
    ) -> Running {
        let flags = [&["run", "--election", "nightly"], flags].concat();
        self.start(node, &flags, |command| {
            command.arg("--").args(program);
            change(command);
        })
    }

    /// Starts a command that is a node.
    pub fn start(&self, node: &str, words: &[&str], change: impl FnOnce(&mut Command)) -> Running {
        let said = self.path(&format!("{node}.said"));
        let printed = File::create(self.path(&format!("{node}.printed"))).unwrap();
        let mut command = self.tenure();
        command.args(words).args(["--node", node]);
        command.stdout(printed).stderr(File::create(&said).unwrap());
        change(&mut command);
        Running { child: command.spawn().unwrap(), node: node.to_owned(), said }
    }

    /// Runs a witness, and waits until it stands or leads.
    pub fn witness(&self, node: &str, flags: &[&str]) -> Running {
        let running = self.run(node, flags, &witness::command());
        until("the node stands", || {
            let said = running.said();
            (said.contains("waiting:") || said.contains("leading")).then_some(())
        });
        running
    }

    /// The first sign of life from this node after `at`.
    pub fn beat_of(&self, node: &str, at: u64) -> Beat {
        until(&format!("a program of {node} runs"), || {
            witness::beats(&self.log()).into_iter().find(|beat| beat.node == node && beat.at > at)
        })
    }

    /// What `tenure explain` says of this term, for programs.
    pub fn explained(&self, term: u64) -> serde_json::Value {
        let asked =
            self.tenure().args(["explain", "nightly", "--json", "--term", &term.to_string()]).output();
        serde_json::from_slice(&asked.unwrap().stdout).unwrap()
    }

    /// How it says that this term ended: the event, the reason, and the words.
    pub fn end_of(&self, term: u64) -> [String; 3] {
        let told = self.explained(term);
        ["ended_by", "reason", "why"].map(|key| told[key].as_str().unwrap_or_default().to_owned())
    }

    pub fn printed(&self, node: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{node}.printed"))).unwrap()
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The guardian, once it is there.
    pub fn guardian(&self) -> u32 {
        until("there is a guardian", || children(self.pid()).first().copied())
    }

    pub fn signal(&self, which: Signal) {
        signal(self.pid(), which);
    }

    /// What it has said on stderr so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    pub fn until_said(&self, words: &str) {
        until(&format!("`{}` says `{words}`, instead of: {}", self.node, self.said()), || {
            self.said().contains(words).then_some(())
        });
    }

    /// Waits for its end.
    pub fn end(&mut self) -> ExitStatus {
        until("it ends", || self.child.try_wait().unwrap())
    }

    /// Its exit code.
    pub fn code(&mut self) -> i32 {
        self.end().code().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its guardian does the rest.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("`{}` had said: {}", self.node, self.said());
        }
    }
}

/// Now, on the clock of the witnesses.
pub fn now() -> u64 {
    clock::now().as_nanos()
}

/// A shell script as a program.
pub fn sh(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(String::from).to_vec()
}

/// Reads a file that a program writes.
pub fn written(path: &Path) -> String {
    until(&format!("{} is written", path.display()), || {
        std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))
    })
}
