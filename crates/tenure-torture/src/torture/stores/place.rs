//! The store that the crew meets in, the way of each node to it, and what can be done to it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tenure_core::Dice;
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::{Disk, MariaDb, Postgres, ZooKeeper, free_port};

use crate::Outcome;

/// Which kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
    MySql,
    ZooKeeper,
    Raft,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Sqlite, Self::Postgres, Self::MySql, Self::ZooKeeper, Self::Raft];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::MySql => "mysql",
            Self::ZooKeeper => "zookeeper",
            Self::Raft => "raft",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What is done to the store itself, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// Ended in good order, and started again.
    Restarted,
    /// `kill -9`, and started again; of several servers one.
    Killed,
    /// Two of three servers killed.
    QuorumLost,
    /// It stands still; of several servers one.
    Frozen,
    /// It reads, and writes nothing.
    ReadOnly,
    /// Somebody has locked what everybody has to write.
    Locked,
    /// Its disk is full.
    DiskFull,
    /// Its wall clock leaps, and stays so.
    ClockStepped,
}

impl Blow {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restarted => "store restarted",
            Self::Killed => "store killed",
            Self::QuorumLost => "quorum lost",
            Self::Frozen => "store frozen",
            Self::ReadOnly => "store read-only",
            Self::Locked => "store locked",
            Self::DiskFull => "disk full",
            Self::ClockStepped => "store's clock stepped",
        }
    }
}

/// A server that is killed keeps what it has said: otherwise it goes back in time, which is another test.
const DURABLE: [&str; 1] = ["innodb-flush-log-at-trx-commit=1"];

pub struct Place {
    server: Server,
    /// For each node its own way to each server.
    ways: Vec<Vec<Proxy>>,
    /// What is done to the store now: the servers that it was done to, and who holds a lock.
    struck: Option<(Blow, Vec<usize>, Option<Child>)>,
    /// Whether the clock can be set, or else the disk be filled.
    clock: bool,
}

enum Server {
    File { path: PathBuf, disk: Disk },
    Postgres(Postgres),
    MySql(MariaDb),
    ZooKeeper(ZooKeeper),
    Raft(Vec<Member>),
}

impl Place {
    /// Whether its leaders write in fenced transactions, and may be stopped there: whoever is stopped inside of one on a
    /// file keeps the file from everybody, which is a limit of such a store.
    pub const fn has_transactions(&self) -> bool {
        matches!(self.server, Server::Postgres(_) | Server::MySql(_))
    }

    /// A store of this kind, with ways for so many nodes. `directory` is for what it needs. A server has a clock that
    /// can be set, or else a disk that can be filled.
    pub fn new(kind: Kind, nodes: usize, directory: &TempDir, clock: bool) -> Outcome<Self> {
        let server = match kind {
            Kind::Sqlite => {
                let place = directory.path().join("disk");
                std::fs::create_dir(&place)?;
                let disk = Disk::mounted(&place, 64);
                Server::File { path: place.join("tenure.db"), disk }
            }
            Kind::Postgres if clock => Server::Postgres(Postgres::start_with_a_clock()),
            Kind::Postgres => Server::Postgres(Postgres::start_on_a_small_disk()),
            Kind::MySql if clock => Server::MySql(MariaDb::start_with_a_clock(&DURABLE, 0)),
            Kind::MySql => Server::MySql(MariaDb::start_on_a_small_disk(&DURABLE)),
            Kind::ZooKeeper => Server::ZooKeeper(ZooKeeper::ensemble(3)),
            Kind::Raft => Server::Raft(Member::group(directory.path())?),
        };
        let ports = match &server {
            Server::Postgres(server) => vec![server.port()],
            Server::MySql(server) => vec![server.port()],
            Server::ZooKeeper(servers) => (0..3).map(|number| servers.port(number)).collect(),
            // A file is reached by no way, and the members of a group by the addresses that they tell.
            Server::File { .. } | Server::Raft(_) => Vec::new(),
        };
        let ways = (0..nodes).map(|_| ports.iter().map(|&port| Proxy::before(port)).collect()).collect();
        Ok(Self { server, ways, struck: None, clock })
    }

    /// Where a node finds it.
    pub fn url(&self, node: usize) -> String {
        let ports: Vec<u16> = self.ways[node].iter().map(Proxy::port).collect();
        match &self.server {
            Server::Postgres(server) => server.url_by(ports[0]),
            Server::MySql(server) => server.url_by(ports[0]),
            Server::ZooKeeper(_) => {
                let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
                format!("zk://{}", hosts.join(","))
            }
            Server::File { .. } | Server::Raft(_) => self.direct(),
        }
    }

    /// Where we find it ourselves, whatever is done to the ways of the nodes.
    pub fn direct(&self) -> String {
        match &self.server {
            Server::File { path, .. } => format!("sqlite:{}", path.display()),
            Server::Postgres(server) => server.url(),
            Server::MySql(server) => server.url(),
            Server::ZooKeeper(servers) => servers.url(),
            Server::Raft(members) => members[0].group.clone(),
        }
    }

    /// The ways of a node: none where there is no network between.
    pub fn ways(&self, node: usize) -> &[Proxy] {
        &self.ways[node]
    }

    /// What can be done to it.
    pub fn blows(&self) -> &'static [Blow] {
        match (&self.server, self.clock) {
            (Server::File { .. }, _) => &[Blow::Locked, Blow::DiskFull],
            (Server::Postgres(_) | Server::MySql(_), true) => &[
                Blow::Restarted,
                Blow::Killed,
                Blow::Frozen,
                Blow::ReadOnly,
                Blow::Locked,
                Blow::ClockStepped,
            ],
            (Server::Postgres(_) | Server::MySql(_), false) => {
                &[Blow::Restarted, Blow::Killed, Blow::Frozen, Blow::ReadOnly, Blow::Locked, Blow::DiskFull]
            }
            (Server::ZooKeeper(_) | Server::Raft(_), _) => &[Blow::Killed, Blow::QuorumLost, Blow::Frozen],
        }
    }

    /// So many connections at a time, where they are counted.
    pub fn allow_few_connections(&mut self, most: u32) -> Outcome<()> {
        match &mut self.server {
            Server::Postgres(_) => {
                self.say(&[&format!("ALTER SYSTEM SET max_connections = {most}")])?;
                if let Server::Postgres(server) = &mut self.server {
                    server.stop();
                    server.launch();
                }
                Ok(())
            }
            Server::MySql(_) => self.say(&[&format!("SET GLOBAL max_connections = {most}")]),
            _ => Ok(()),
        }
    }

    pub const fn is_struck(&self) -> bool {
        self.struck.is_some()
    }

    /// Does it, until [`relieve`](Self::relieve).
    pub fn strike(&mut self, blow: Blow, lasts: Duration, dice: &mut Dice) -> Outcome<()> {
        let first = usize::try_from(dice.below(3))?;
        let hit = if blow == Blow::QuorumLost { vec![first, (first + 1) % 3] } else { vec![first] };
        let mut locked_by = None;
        match blow {
            Blow::Restarted => match &mut self.server {
                Server::Postgres(server) => server.stop(),
                Server::MySql(server) => server.stop(),
                _ => {}
            },
            Blow::Killed | Blow::QuorumLost => match &mut self.server {
                Server::Postgres(server) => server.kill(),
                Server::MySql(server) => server.kill(),
                Server::ZooKeeper(servers) => hit.iter().for_each(|&number| servers.kill(number)),
                Server::Raft(members) => {
                    for &number in &hit {
                        members[number].kill()?;
                    }
                }
                Server::File { .. } => {}
            },
            Blow::Frozen => self.signal(first, Signal::STOP),
            Blow::ReadOnly => self.set_read_only(true)?,
            Blow::Locked => locked_by = Some(self.lock(lasts)?),
            Blow::DiskFull => match &self.server {
                Server::File { disk, .. } => disk.fill(),
                Server::Postgres(server) => server.fill_the_disk(),
                Server::MySql(server) => server.fill_the_disk(),
                _ => {}
            },
            Blow::ClockStepped => {
                let seconds = i64::try_from(dice.below(7200))? - 3600;
                match &self.server {
                    Server::Postgres(server) => server.set_clock(seconds),
                    Server::MySql(server) => server.set_clock(seconds),
                    _ => {}
                }
            }
        }
        self.struck = Some((blow, hit, locked_by));
        Ok(())
    }

    /// All is well again.
    pub fn relieve(&mut self) -> Outcome<()> {
        let Some((blow, hit, locked_by)) = self.struck.take() else { return Ok(()) };
        match blow {
            Blow::Restarted | Blow::Killed | Blow::QuorumLost => match &mut self.server {
                Server::Postgres(server) => server.launch(),
                Server::MySql(server) => server.launch(),
                Server::ZooKeeper(servers) => hit.iter().for_each(|&number| servers.spawn(number)),
                Server::Raft(members) => {
                    for number in hit {
                        members[number].launch()?;
                    }
                }
                Server::File { .. } => {}
            },
            Blow::Frozen => self.signal(hit[0], Signal::CONT),
            Blow::ReadOnly => self.set_read_only(false)?,
            Blow::Locked => {
                if let Some(mut holder) = locked_by {
                    holder.wait()?;
                }
            }
            Blow::DiskFull => match &mut self.server {
                Server::File { disk, .. } => disk.free(),
                Server::Postgres(server) => server.free_the_disk(),
                Server::MySql(server) => server.free_the_disk(),
                _ => {}
            },
            Blow::ClockStepped => {}
        }
        Ok(())
    }

    fn signal(&self, number: usize, signal: Signal) {
        match &self.server {
            Server::Postgres(server) => server.signal_all(signal),
            Server::MySql(server) => server.signal(signal),
            Server::ZooKeeper(servers) => servers.signal(number, signal),
            Server::Raft(members) => members[number].signal(signal),
            Server::File { .. } => {}
        }
    }

    fn set_read_only(&self, only: bool) -> Outcome<()> {
        let sql = match &self.server {
            Server::Postgres(_) => format!("ALTER SYSTEM SET default_transaction_read_only = {only}"),
            _ => format!("SET GLOBAL read_only = {only}"),
        };
        // Whoever may write nothing may not change this either, unless he says so.
        let said: &[&str] = match &self.server {
            Server::Postgres(_) => {
                &["SET default_transaction_read_only = off", &sql, "SELECT pg_reload_conf()"]
            }
            _ => &[&sql],
        };
        self.say(said)
    }

    fn say(&self, said: &[&str]) -> Outcome<()> {
        let status = self.person(said).status()?;
        if status.success() { Ok(()) } else { Err(format!("refused: `{}`", said.join("; ")).into()) }
    }

    /// Somebody who keeps what all have to write, and lets go after so long.
    fn lock(&self, lasts: Duration) -> Outcome<Child> {
        let seconds = lasts.as_secs_f32();
        let command = match &self.server {
            Server::File { path, .. } => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg(LOCK_WORD).arg(path).arg(lasts.as_millis().to_string());
                command
            }
            Server::Postgres(_) => self.person(&[&format!(
                "BEGIN; SELECT 1 FROM tenure.sessions FOR UPDATE; SELECT pg_sleep({seconds}); COMMIT"
            )]),
            _ => self.person(&[&format!(
                "BEGIN; SELECT id FROM tenure_sessions FOR UPDATE; DO SLEEP({seconds}); COMMIT"
            )]),
        };
        let mut command = command;
        Ok(command.spawn()?)
    }

    /// A person who says this to the database.
    fn person(&self, said: &[&str]) -> Command {
        let url = self.direct();
        let mut command = if matches!(self.server, Server::Postgres(_)) {
            let mut command = Command::new("psql");
            command.args(["--no-psqlrc", "--quiet", &url]);
            for sql in said {
                command.args(["--command", sql]);
            }
            command
        } else {
            let (Some((_, database)), Server::MySql(server)) = (url.rsplit_once('/'), &self.server) else {
                unreachable!("only databases are asked in SQL");
            };
            let mut command = Command::new("mariadb");
            command.args(["--no-defaults", "--host=127.0.0.1", "--user=owner", database]);
            command.arg(format!("--port={}", server.port())).arg("--execute").arg(said.join("; "));
            command
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing that stands still can be ended in good order.
        let _ = self.relieve();
    }
}

/// The word that makes this binary somebody who has locked a file.
pub const LOCK_WORD: &str = "locker";

/// Keeps the file's lock for a while.
pub fn hold_lock(words: &[String]) -> Outcome<()> {
    let [path, millis] = words else { return Err("a file and a time".into()) };
    let file = tenure::sqlite::rusqlite::Connection::open(Path::new(path))?;
    file.busy_timeout(Duration::from_secs(5))?;
    file.execute_batch("BEGIN IMMEDIATE")?;
    std::thread::sleep(Duration::from_millis(millis.parse()?));
    file.execute_batch("ROLLBACK")?;
    Ok(())
}

/// The word that makes this binary a member of a group.
pub const MEMBER_WORD: &str = "member";

/// Is a member of a group, and does nothing else, until it is killed.
pub fn be_a_member(words: &[String]) -> Outcome<()> {
    let [url] = words else { return Err("a URL".into()) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let _member = tenure::connect(url).await?;
        std::future::pending().await
    })
}

/// A member of a group that does nothing else. Killed when dropped.
struct Member {
    group: String,
    address: String,
    data: PathBuf,
    process: Option<Child>,
}

impl Member {
    /// Three of them.
    fn group(directory: &Path) -> Outcome<Vec<Self>> {
        let addresses: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        let group = format!("raft://{}", addresses.join(","));
        let mut members = Vec::new();
        for address in addresses {
            let data = directory.join(format!("member-{}", members.len()));
            let mut member = Self { group: group.clone(), address, data, process: None };
            member.launch()?;
            members.push(member);
        }
        Ok(members)
    }

    fn launch(&mut self) -> Outcome<()> {
        let (group, data, address) = (&self.group, self.data.display(), &self.address);
        // It ends with the thread that starts it, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(std::env::current_exe()?);
        command.arg(MEMBER_WORD).arg(format!("{group}?data={data}&listen={address}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn()?);
        Ok(())
    }

    fn kill(&mut self) -> Outcome<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            let pid = tenure_torture::signals::pid(process);
            // It is ours, and is not reaped before it is killed.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
