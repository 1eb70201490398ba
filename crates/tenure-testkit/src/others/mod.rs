//! Candidates of other libraries, the originals, each in a process of its own: Apache Curator, kazoo and tooz on
//! ZooKeeper, etcd's own election ([`etcd`]), and the names that Erlang registers ([`global`]).
//!
//! They say `leads INSTANT` (of the boot clock) when elected. On their stdin, `resign` ends a leadership, and is
//! answered with `resigned INSTANT`: when it was told to; after that they stand again only when told to
//! `stand`. `watch` is answered with `watches`, and, once they do not claim to lead any more, with
//! `ceased INSTANT`: when they last did. Those on ZooKeeper answer `list` with `list ID…`: all candidates.

pub mod etcd;
pub mod global;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::monotonic;
use crate::server::succeed;

/// Whose candidates, on ZooKeeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Curator's `LeaderLatch`.
    CuratorLatch,
    /// Curator's `LeaderSelector`.
    CuratorSelector,
    /// kazoo's `Election`.
    Kazoo,
    /// tooz with its driver for ZooKeeper. It knows no witness.
    Tooz,
}

/// Where a candidate stands, and as whom.
#[derive(Clone, Copy, Debug)]
pub struct Candidacy<'a> {
    /// The servers, as `h1:2181,h2:2181`.
    pub hosts: &'a str,
    /// The znode of the election.
    pub path: &'a str,
    /// What it calls itself.
    pub id: &'a str,
    /// Of its session.
    pub timeout: Duration,
    /// A file that is there while one of them leads: if it is there already, the one that leads says `double`.
    pub witness: Option<&'a Path>,
}

impl Library {
    /// The command that starts a candidate. It ends when its stdin is closed.
    ///
    /// # Panics
    /// If the library is not installed.
    #[must_use]
    pub fn candidate(self, candidacy: &Candidacy<'_>) -> Command {
        let mut command = match self {
            Self::CuratorLatch => curator("latch"),
            Self::CuratorSelector => curator("selector"),
            Self::Kazoo => python("/usr/bin/python3".into(), "kazoo_candidate.py"),
            Self::Tooz => python(environment().join("bin/python3"), "tooz_candidate.py"),
        };
        command.args([candidacy.hosts, candidacy.path, candidacy.id]);
        command.arg(candidacy.timeout.as_millis().to_string());
        if matches!(self, Self::CuratorLatch | Self::CuratorSelector) {
            command.arg(monotonic::behind().as_nanos().to_string());
        }
        command.args(candidacy.witness);
        command
    }
}

/// The jars that a candidate of Curator is made of, but for the runtime.
#[must_use]
pub fn jars() -> Vec<PathBuf> {
    let jars = ["curator-recipes", "curator-framework", "curator-client", "zookeeper", "guava", "slf4j-nop"];
    jars.iter().map(|jar| PathBuf::from(format!("/usr/share/java/{jar}.jar"))).collect()
}

/// The directory of the Python environment that `cargo xtask bench` makes for what Debian does not have.
#[must_use]
pub fn environment() -> PathBuf {
    built("python")
}

/// Where `cargo xtask bench` and the benches keep what is made of other libraries.
fn built(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    target.join("others").join(name)
}

fn curator(recipe: &str) -> Command {
    let jars: Vec<String> = jars().iter().map(|jar| jar.display().to_string()).collect();
    for jar in &jars {
        assert!(Path::new(jar).is_file(), "this needs {jar}: `cargo xtask setup` installs it");
    }
    let jars = jars.join(":");
    let classes = classes(&jars);
    let mut command = Command::new("java");
    command.args(["-cp", &format!("{}:{jars}", classes.display()), "Curator", recipe]);
    command
}

/// The candidate's classes, compiled once for each version of their source. Many may want them at a time, so they
/// appear at once.
fn classes(jars: &str) -> PathBuf {
    let source = source("Curator.java");
    let written = source.metadata().and_then(|file| file.modified()).expect("the source is there");
    let age = written.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let classes = built(&format!("curator-{age}"));
    if !classes.is_dir() {
        let parent = built("");
        std::fs::create_dir_all(&parent).expect("the target directory is ours");
        let ours = TempDir::new_in(parent).expect("the target directory is ours");
        succeed(Command::new("javac").args(["-cp", jars, "-d"]).arg(ours.path()).arg(source));
        // If somebody else was first, theirs are as good, and ours go.
        let _ = std::fs::rename(ours.path(), &classes);
    }
    classes
}

fn python(interpreter: PathBuf, script: &str) -> Command {
    assert!(interpreter.is_file(), "this needs {}: `cargo xtask bench` installs it", interpreter.display());
    let mut command = Command::new(interpreter);
    // Nothing is left beside the sources.
    command.arg("-B").arg(source(script));
    command
}

/// What stands beside this file.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/others").join(name)
}
