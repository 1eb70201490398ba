//! Every line of `tenure` in the documents is run, as it stands but for hosts, ports and paths, which are ours.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tenure_testkit::patience::until;
use tenure_testkit::server::free_port;

use super::book::{Document, documents, root};
use super::place::{Kind, Place};

/// What is not run, and why.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("cargo install --path crates/tenure-cli", "builds what is tested here"),
    ("sqlite3 -column -header /var/lib/app/tenure.db", "its lines are run by `statements`"),
    ("tenure top", "needs a terminal; `the_prose_names_only_flags_that_exist` reads its words"),
];

/// A document's own machine: its directory, its stores, and what was started there.
struct Terminal {
    directory: TempDir,
    postgres: OnceCell<Place>,
    mysql: OnceCell<Place>,
    zookeeper: OnceCell<Place>,
    raft: OnceCell<Place>,
    running: Vec<Running>,
}

/// A command that goes on, as in a terminal of its own. Killed when dropped.
struct Running {
    line: String,
    child: Child,
    said: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let bin = directory.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tenure"), bin.join("tenure")).unwrap();
        // The programs of all examples.
        for name in ["job", "scheduler", "migrate"] {
            let program = directory.path().join(name);
            std::fs::write(&program, "#!/bin/sh\necho working\n").unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::write(directory.path().join("token"), "correct-horse-battery-staple\n").unwrap();
        std::fs::copy(root().join("deploy/tenure.toml"), directory.path().join("tenure.toml")).unwrap();
        let (postgres, mysql, zookeeper, raft) =
            (OnceCell::new(), OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { directory, postgres, mysql, zookeeper, raft, running: Vec::new() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The URL of a store of ours, for one that the documents name.
    fn store(&self, url: &str) -> String {
        let place = |cell: &OnceCell<Place>, kind| cell.get_or_init(|| Place::new(kind, self.path())).url();
        match url.split(':').next() {
            Some("postgres") => place(&self.postgres, Kind::Postgres),
            Some("mysql") => place(&self.mysql, Kind::MySql),
            Some("zk") => place(&self.zookeeper, Kind::ZooKeeper),
            Some("raft") => place(&self.raft, Kind::Raft),
            _ => format!("sqlite:{}", self.path().join("named.db").display()),
        }
    }

    /// The same line with hosts, ports and paths that are ours.
    fn ours(&self, line: &str) -> String {
        let line = line
            .strip_prefix("cargo run -- ")
            .map_or_else(|| line.to_owned(), |rest| format!("tenure {rest}"));
        let member = line.contains("--data").then(|| format!("127.0.0.1:{}", free_port()));
        let serves = ["tenure node", "tenure run"].iter().any(|start| line.starts_with(start));
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            let value = words[at].clone();
            words[at] = match (words[at - 1].as_str(), &member) {
                ("--store", Some(member)) => format!("raft://{member}"),
                ("--raft-listen", Some(member)) => member.clone(),
                ("--store", None) => self.store(&value),
                ("--data", _) => self.path().join("data").display().to_string(),
                ("--listen", _) if serves => "127.0.0.1:0".to_owned(),
                _ => value,
            };
        }
        words.join(" ")
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENURE_")) {
            command.env_remove(name);
        }
        let path = format!("{}:{}", self.path().join("bin").display(), std::env::var("PATH").unwrap());
        command.args(["-c", line]).current_dir(self.path()).env("PATH", path).env("HOME", self.path());
        command.env("XDG_STATE_HOME", self.path().join("state")).env("TENURE_LISTEN", "127.0.0.1:0");
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// Types a line, and waits until it is done; one that goes on, until it does what it is for.
    fn run(&mut self, place: &str, line: &str) {
        let ours = self.ours(line);
        let goes_on =
            ["tenure run ", "tenure node", "tenure witness"].iter().any(|start| ours.starts_with(start));
        if goes_on {
            return self.start(place, &ours);
        }
        // Whoever was started just now serves already, and may be about to stand.
        let may_be_early =
            ["tenure transfer ", "tenure explain "].iter().any(|start| ours.starts_with(start));
        let output = until(&format!("{place}: `{ours}` is answered with yes"), || {
            let output = self.shell(&ours).output().unwrap();
            (!may_be_early || output.status.code() != Some(1)).then_some(output)
        });
        let told = String::from_utf8_lossy(&output.stderr);
        // Who leads, how it stands, and whether the store is fast enough may be answered with no.
        let may_be_no =
            ["tenure leader ", "tenure status", "tenure check"].iter().any(|start| ours.starts_with(start));
        let fine = output.status.success() || (may_be_no && output.status.code() == Some(1));
        assert!(fine, "{place}: `{ours}` ends with {}: {told}", output.status);
    }

    fn start(&mut self, place: &str, line: &str) {
        let said = self.path().join(format!("{}.said", self.running.len()));
        let mut command = self.shell(&format!("exec {line}"));
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&said).unwrap());
        let mut running = Running { line: line.to_owned(), child: command.spawn().unwrap(), said };
        let works = until(&format!("{place}: `{line}` does what it is for"), || {
            let told = std::fs::read_to_string(&running.said).unwrap();
            let words = [" serves http", "leading `", "waiting: `", "votes", ": started as process"];
            let begun = words.iter().any(|word| told.contains(word));
            let ended = running.child.try_wait().unwrap();
            (begun || ended.is_some()).then(|| ended.is_none_or(|status| status.success()))
        });
        assert!(works, "{place}: `{line}`: {}", std::fs::read_to_string(&running.said).unwrap());
        self.running.push(running);
    }

    /// Ctrl-C everywhere: what went on ends as it should.
    fn leave(mut self) {
        while let Some(mut running) = self.running.pop() {
            if running.child.try_wait().unwrap().is_none() {
                let _ = kill_process(Pid::from_child(&running.child), Signal::TERM);
            }
            let status = until("it ends", || running.child.try_wait().unwrap());
            // A program of `run` that was stopped ends by its signal, as ever.
            let told = std::fs::read_to_string(&running.said).unwrap();
            assert!(matches!(status.code(), Some(0 | 143)), "`{}` ends with {status}: {told}", running.line);
        }
    }
}

fn run_all(document: &Document) {
    let mut terminal = Terminal::new();
    if document.path == "docs/what-happens-when.md" {
        // It is for people who have nodes already, and so a store.
        terminal.run(&document.path, "tenure check --write");
    }
    for block in &document.blocks {
        for line in block.commands() {
            let excepted = EXCEPTIONS.iter().any(|(start, _)| line.starts_with(start));
            let chore = line.starts_with("cargo xtask ") || line.starts_with("cargo run --example ");
            if !excepted && !chore {
                terminal.run(&block.place, &line);
            }
        }
    }
    terminal.leave();
}

#[test]
fn every_command_of_the_readme_and_the_guides_runs() {
    documents().iter().filter(|document| !document.path.starts_with("docs/stores/")).for_each(run_all);
}

#[test]
fn every_command_about_a_store_runs_on_that_store() {
    documents().iter().filter(|document| document.path.starts_with("docs/stores/")).for_each(run_all);
}

#[test]
fn the_prose_names_only_commands_and_flags_that_exist() {
    let mut helps = BTreeMap::new();
    for document in documents() {
        for (number, span) in document.spans.iter().filter(|(_, span)| span.starts_with("tenure ")) {
            let place = format!("{}:{number}: `{span}`", document.path);
            let ours = span.split(" -- ").next().unwrap();
            let words: Vec<&str> = ours.split_whitespace().skip(1).collect();
            let names = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
            // `tenure config show` has two words, `tenure leader nightly` one and an argument.
            let mut path: Vec<&str> = words.iter().take(2).take_while(names).copied().collect();
            let mut help = helped(&mut helps, &path);
            if help.is_none() {
                path.truncate(1);
                help = helped(&mut helps, &path);
            }
            let help = help.unwrap_or_else(|| panic!("{place}: there is no such command"));
            for word in words {
                let flag = word.trim_matches(['[', ']', '…']).split('=').next().unwrap();
                let known =
                    flag == "--help" || help.split([' ', ',', '\n', '[', '=']).any(|known| known == flag);
                assert!(!flag.starts_with("--") || known, "{place}: there is no {flag}");
            }
        }
    }
}

/// What `tenure … --help` says, if there is such a command.
fn helped(known: &mut BTreeMap<String, Option<String>>, path: &[&str]) -> Option<String> {
    let ask = || {
        let output = Command::new(env!("CARGO_BIN_EXE_tenure")).args(path).arg("--help").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        // A word that is no subcommand is an argument to clap, and the help is that of the command before it.
        let own = text.lines().any(|line| line.starts_with(&format!("Usage: tenure {}", path.join(" "))));
        (output.status.success() && own).then_some(text)
    };
    known.entry(path.join(" ")).or_insert_with(ask).clone()
}
