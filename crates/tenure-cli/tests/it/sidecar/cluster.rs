//! `tenure node` processes on one SQLite file, each with a program behind it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tenure::{ElectionName, Store};
pub use tenure_testkit::patience::HANG;

pub struct Cluster {
    pub directory: TempDir,
    pub store: Arc<dyn Store>,
    pub election: ElectionName,
    url: String,
    replicas: Vec<Replica>,
}

struct Replica {
    id: String,
    listen: String,
    arguments: Vec<String>,
    process: Process,
}

/// Ends with its owner.
pub struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub fn spawn(command: &mut Command, log: &Path) -> Self {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let command = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }
}

impl Cluster {
    /// A node in front of each of these programs.
    pub async fn start(upstreams: &[String], leader_only: &str) -> Self {
        Self::start_with(upstreams, leader_only, &[]).await
    }

    pub async fn start_with(upstreams: &[String], leader_only: &str, flags: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", directory.path().join("tenure.db").display());
        let store = tenure::connect(&url).await.unwrap();
        let mut replicas = Vec::new();
        for (number, upstream) in (1..).zip(upstreams) {
            let (id, listen) = (format!("node-{number}"), free_place().await);
            let address = format!("http://{listen}");
            let ttl: &[&str] = if flags.contains(&"--ttl") { &[] } else { &["--ttl", "1s"] };
            let given = ["node", "--election", "orders", "--store", &url, "--node", &id]
                .into_iter()
                .chain(["--listen", &listen, "--address", &address])
                .chain(ttl.iter().copied())
                .chain(["--upstream", upstream, "--leader-only", leader_only])
                .chain(flags.iter().copied());
            let arguments: Vec<String> = given.map(str::to_owned).collect();
            let process = node(&directory, &id, &arguments);
            replicas.push(Replica { id, listen, arguments, process });
        }
        let cluster = Self { directory, store, election: "orders".try_into().unwrap(), url, replicas };
        for replica in &cluster.replicas {
            cluster.until_ready(replica).await;
        }
        cluster
    }

    /// Where the nodes are.
    pub fn addresses(&self) -> Vec<String> {
        self.replicas.iter().map(|replica| replica.listen.clone()).collect()
    }

    /// Where the leader is, and where one that follows.
    pub fn split(&self, leader: &str) -> (String, String) {
        let find =
            |leads: bool| self.replicas.iter().find(|replica| (replica.id == leader) == leads).unwrap();
        (find(true).listen.clone(), find(false).listen.clone())
    }

    /// Waits until a node serves.
    async fn until_ready(&self, replica: &Replica) {
        let ready = async {
            while tokio::net::TcpStream::connect(&replica.listen).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(HANG, ready).await;
        assert!(waited.is_ok(), "{} does not serve: {}", replica.id, self.log(&replica.id));
    }

    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    /// What `tenure config` prints.
    pub fn configuration(&self, balancer: &str, listen: &str) -> String {
        let output = tenure(&["config", balancer, "--listen", listen, "--store", &self.url]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The leader, once there is one, and its term.
    pub async fn leader(&self) -> (String, u64) {
        let found = async {
            loop {
                let record = self.store.read(self.election.clone()).await.unwrap().value;
                if let Some(holder) = record.holder {
                    return (holder.node.to_string(), holder.term.number());
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(HANG, found).await.expect("nobody is elected")
    }

    /// Waits until so many stand beside the leader.
    pub async fn until_standing(&self, candidates: usize) {
        let standing = async {
            while self.store.candidates(self.election.clone()).await.unwrap().value.len() < candidates {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(HANG, standing).await.expect("too few stand");
    }

    /// Asks the leader to make way, again if the file was locked for too long: that changes nothing.
    pub async fn petition(&self) {
        let asked = async {
            while self.store.petition(self.election.clone(), None).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(HANG, asked).await.expect("the store does not answer");
    }

    /// `kill -9`, and starts it again.
    pub async fn crash(&mut self, id: &str) {
        self.end(id, Signal::KILL).await;
    }

    /// Tells it to stop, waits until it has, and starts it again: what a deployment does.
    pub async fn restart(&mut self, id: &str) {
        self.end(id, Signal::TERM).await;
    }

    async fn end(&mut self, id: &str, signal: Signal) {
        let replica = self.replicas.iter_mut().find(|replica| replica.id == id).unwrap();
        let child = &mut replica.process.0;
        kill_process(Pid::from_child(child), signal).unwrap();
        let ended = async {
            while child.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(HANG, ended).await.expect("it does not end");
        replica.process = node(&self.directory, &replica.id, &replica.arguments);
    }
}

fn node(directory: &TempDir, id: &str, arguments: &[String]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    Process::spawn(command.args(arguments), &directory.path().join(format!("{id}.log")))
}

/// Runs the command to its end.
pub fn tenure(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).args(arguments).output().unwrap()
}

/// An address where nobody listens yet.
pub async fn free_place() -> String {
    format!("127.0.0.1:{}", tenure_testkit::server::free_port())
}
