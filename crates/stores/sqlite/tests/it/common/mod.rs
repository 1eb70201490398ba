//! What the tests of this store share.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;
use tenure_core::{ElectionName, NodeId, Opening, SessionId, Standing};
use tenure_sqlite::SqliteStore;
use tenure_sqlite::rusqlite;
use tenure_store::{Claim, Lease, NodeInfo, Open, Options, Resign, Store, StoreError};

/// A directory with a path for a database in it.
pub struct Place {
    pub dir: TempDir,
    pub path: PathBuf,
}

pub fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    Place { dir, path }
}

impl Place {
    pub async fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.path, Options::default()).await.unwrap()
    }

    /// A person's connection, as with `sqlite3`.
    pub fn by_hand(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }
}

pub fn name(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

pub fn session(number: u128) -> SessionId {
    SessionId::from_u128(number)
}

/// Session `number`, of node `n<number>`.
pub fn opening(number: u128) -> Open {
    Open {
        session: session(number),
        sequence: 1,
        ttl: Duration::from_secs(10),
        node: NodeInfo {
            address: Some(String::from("http://host:1")),
            pid: 7,
            ..NodeInfo::new(NodeId::new(format!("n{number}")).unwrap(), "host")
        },
        supersedes: None,
        over: None,
    }
}

pub async fn open(store: &SqliteStore, number: u128) -> SessionId {
    let opened = store.open(opening(number)).await.unwrap().value;
    assert_eq!(opened, Opening::Opened { ttl: Duration::from_secs(10) });
    session(number)
}

pub fn claiming(session: SessionId, election: &str) -> Claim {
    Claim::plain(session, name(election), 1)
}

pub fn resigning(session: SessionId, election: &str) -> Resign {
    Resign { session, election: name(election), attempt: 2, term: None, to: None, cause: Default::default() }
}

/// Claims an election that is free.
pub async fn win(store: &SqliteStore, session: SessionId, election: &str) -> Lease {
    match store.claim(claiming(session, election)).await.unwrap().value {
        Standing::Leading { term } => Lease { session, election: name(election), term },
        other => panic!("not granted: {other:?}"),
    }
}

/// Why the store refuses to be opened; it says that a human has to change something.
pub async fn misconfigured(path: &Path) -> String {
    match SqliteStore::open(path, Options::default()).await.map(|_| ()) {
        Err(error @ StoreError::Misconfigured(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// A file system of its own, for faults that need one; unmounted when dropped. `None` where the
/// tests may not mount.
pub struct Mount(PathBuf);

pub fn mount(at: &Path, options: &str) -> Option<Mount> {
    run("mount", &["-t", "tmpfs", "-o", options, "tmpfs"], at)
}

/// Puts a read-only view of a directory over the directory itself: what is open stays writable,
/// what is opened from now on is not.
pub fn mount_read_only_over(dir: &Path) -> Option<Mount> {
    let cover = run("mount", &["--bind", dir.to_str().unwrap()], dir)?;
    let done = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(dir).status();
    assert!(done.unwrap().success());
    Some(cover)
}

fn run(command: &str, arguments: &[&str], at: &Path) -> Option<Mount> {
    let done = Command::new(command).args(arguments).arg(at).output();
    if done.is_ok_and(|done| done.status.success()) {
        return Some(Mount(at.to_owned()));
    }
    eprintln!("skipped: this test mounts a file system, which needs root");
    None
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
