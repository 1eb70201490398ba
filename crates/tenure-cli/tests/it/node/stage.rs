//! A place with a store, and `tenure node` processes in it.
#![allow(dead_code, reason = "every test target uses its own part of it")]

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
pub use tenure_testkit::patience::{HANG, until};

use super::client::{self, Answer};
use super::place::Place;

/// What those show who may change something.
pub const TOKEN: &str = "correct-horse-battery-staple";
/// Short, where a test waits for it.
pub const TTL: &str = "2s";
/// A ttl that no test waits for: nobody loses its lease on a machine that is busy with other things. Not longer, because
/// the pause after a request that failed grows with it, and a disk may be busy for a second.
const NEVER: &str = "1m";

pub struct Stage {
    directory: TempDir,
    place: Place,
}

/// A `tenure node`. Killed when dropped.
pub struct Served {
    pub child: Child,
    pub id: String,
    pub address: SocketAddr,
    said: PathBuf,
}

impl Stage {
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("token"), format!("{TOKEN}\n")).unwrap();
        let place = Place::new(super::STORE, directory.path());
        Self { directory, place }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The command, with this store, and nothing of ours in its environment.
    pub fn tenure(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TENURE_")) {
            command.env_remove(name);
        }
        command.env("TENURE_STORE", self.place.url()).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// A node, with a token, at any free port.
    pub fn node(&self, id: &str, flags: &[&str]) -> Served {
        let mut command = self.tenure();
        command.args(["node", "--node", id, "--token-file"]).arg(self.path("token")).args(flags);
        if !flags.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if !flags.iter().any(|flag| ["--ttl", "--config"].contains(flag)) {
            command.args(["--ttl", NEVER]);
        }
        self.serve(id, command)
    }

    /// Starts a command that serves, and waits until it does.
    pub fn serve(&self, id: &str, mut command: Command) -> Served {
        let said = self.path(&format!("{id}.said"));
        command.stdout(Stdio::null()).stderr(File::create(&said).unwrap());
        let mut child = command.spawn().unwrap();
        let address = until("it serves", || {
            let text = std::fs::read_to_string(&said).unwrap();
            if let Some(status) = child.try_wait().unwrap() {
                panic!("it ended with {status}: {text}");
            }
            // Whole lines only: half a port is another one.
            let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let url = lines.find_map(|line| line.split_once(" serves http")).map(|(_, rest)| rest)?;
            url.split("://").nth(1)?.trim().parse().ok()
        });
        Served { child, id: id.to_owned(), address, said }
    }

    /// Waits until these nodes stand for the election, or lead it: whoever resigns before that leads again.
    pub fn until_stand(&self, ids: &[&str]) {
        until(&format!("{ids:?} stand"), || {
            let told = self.tenure().args(["status", "coordinator", "--json"]).output().unwrap();
            let Ok(status) = serde_json::from_slice::<Value>(&told.stdout) else { return false };
            let standing = status["candidates"].as_array().unwrap();
            let stands = |id: &str| standing.iter().any(|candidate| candidate["node_id"] == id);
            ids.iter().all(|id| status["leader_id"] == *id || stands(id))
        });
    }

    /// Nodes that all see each other, the first of them leading, and the others standing behind it.
    pub fn cluster(&self, ids: &[&str], flags: &[&str]) -> Vec<Served> {
        let mut nodes = Vec::new();
        for id in ids {
            let node = self.node(id, flags);
            if nodes.is_empty() {
                node.until_ok("/leader");
            }
            nodes.push(node);
        }
        for node in &nodes {
            until("all see each other, and who leads", || {
                let status = node.get("/cluster/status").says(200);
                let whole = status["cluster_size"] == ids.len();
                match status["leader_id"].as_str()? {
                    leader if leader == ids[0] => whole.then_some(()),
                    // On a busy machine its lease may have lapsed before the others were there.
                    _ if whole => {
                        node.order("/cluster/transfer", &format!(r#"{{"to":"{}"}}"#, ids[0]));
                        None
                    }
                    _ => None,
                }
            });
        }
        self.until_stand(ids);
        nodes
    }
}

impl Served {
    pub fn get(&self, path: &str) -> Answer {
        client::get(self.address, path)
    }

    /// Asks for something that changes something, with the token.
    pub fn order(&self, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        client::ask(self.address, "POST", path, &[("Authorization", &bearer)], body)
    }

    /// Asks the leader to make way for a node, once that one stands: it may still be about to.
    pub fn transfer(&self, to: &str) -> Answer {
        until(&format!("{to} stands"), || {
            let answer = self.order("/cluster/transfer", &format!(r#"{{"to":"{to}"}}"#));
            Some(answer).filter(|answer| answer.status != 409)
        })
    }

    pub fn until_ok(&self, path: &str) -> Answer {
        until(&format!("{} answers {path} with 200", self.id), || {
            Some(self.get(path)).filter(|answer| answer.status == 200)
        })
    }

    pub fn signal(&self, which: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, which).unwrap();
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    /// Its exit code, once it has ended.
    pub fn code(&mut self) -> Option<i32> {
        until("it ends", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("`{}` had said: {}", self.id, std::fs::read_to_string(&self.said).unwrap_or_default());
        }
    }
}
