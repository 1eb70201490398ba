//! Who is compared: five rows of Tenure, and nine of others.

use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_testkit::others;
use tenure_testkit::server::{Etcd, MariaDb, Postgres, ZooKeeper};

use crate::common::Outcome;
use crate::common::cast::Peer;
use crate::peers::etcd::EtcdElection;
use crate::peers::global::Global;
use crate::peers::tenure::{Group, OnFile};
use crate::peers::zookeeper::{Kind, OnZooKeeper};
use crate::peers::{Part, advisory, lease, locks};

/// The servers that all of them share, with everything synced.
pub struct Servers {
    postgres: Postgres,
    mariadb: MariaDb,
    zookeeper: ZooKeeper,
    etcd: Etcd,
}

impl Servers {
    pub fn start() -> Outcome<Self> {
        let postgres = Postgres::start_with(&[]);
        let mariadb = MariaDb::start_with(&["innodb-flush-log-at-trx-commit=1"]);
        let (zookeeper, etcd) = (ZooKeeper::ensemble(1), Etcd::start());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            lease::make_table(&postgres.url()).await?;
            locks::make_tables(&mariadb.url()).await
        })?;
        Ok(Self { postgres, mariadb, zookeeper, etcd })
    }

    fn on_postgres<'a>(&'a self, name: &'a str, part: &'a [&'a str]) -> Part<'a> {
        let url = Box::new(|port| self.postgres.url_by(port));
        Part { name, part, server: self.postgres.port(), url }
    }

    fn on_mariadb<'a>(&'a self, name: &'a str, part: &'a [&'a str]) -> Part<'a> {
        let url = Box::new(|port| self.mariadb.url_by(port));
        Part { name, part, server: self.mariadb.port(), url }
    }

    fn on_zookeeper(&self, kind: Kind) -> OnZooKeeper {
        OnZooKeeper { kind, port: self.zookeeper.port(0) }
    }
}

/// One who is compared.
pub struct Row<'a> {
    pub peer: Box<dyn Peer + 'a>,
    pub is_tenure: bool,
    /// What its candidates meet on.
    pub on: &'static str,
    /// Whether a leader can give up its place, so that a successor takes it at once.
    pub resigns: bool,
    /// What its program is on disk; none: it was written for this bench.
    pub program: Option<Vec<PathBuf>>,
    /// What must be known about it.
    pub note: &'static str,
}

impl<'a> Row<'a> {
    fn of(peer: impl Peer + 'a, on: &'static str, note: &'static str) -> Self {
        Self { peer: Box::new(peer), is_tenure: false, on, resigns: true, program: None, note }
    }

    fn with_program(self, program: Vec<PathBuf>) -> Self {
        Self { program: Some(program), ..self }
    }

    pub fn name(&self) -> String {
        format!("{}, {}", self.peer.name(), self.on)
    }
}

pub fn rows(servers: &Servers) -> Outcome<Vec<Row<'_>>> {
    let mut rows = ours(servers)?;
    rows.extend(libraries(servers)?);
    rows.extend(designs(servers));
    Ok(rows)
}

fn ours(servers: &Servers) -> Outcome<Vec<Row<'_>>> {
    const NOTE: &str = "the program is the bench's own, with all five stores in it";
    let program = stripped()?;
    let rows = [
        Row::of(OnFile::open()?, "SQLite", NOTE),
        Row::of(servers.on_postgres("Tenure", &[]), "PostgreSQL", NOTE),
        Row::of(servers.on_mariadb("Tenure", &[]), "MariaDB", NOTE),
        Row::of(servers.on_zookeeper(Kind::Tenure), "ZooKeeper", NOTE),
        Row::of(Group::open()?, "Raft", NOTE),
    ];
    Ok(rows.map(|row| Row { is_tenure: true, ..row.with_program(vec![program.clone()]) }).into())
}

fn libraries(servers: &Servers) -> Outcome<Vec<Row<'_>>> {
    let curator = Row::of(
        servers.on_zookeeper(Kind::CURATOR),
        "ZooKeeper",
        "the program counts the Java runtime and the jars",
    );
    let kazoo = Row::of(
        servers.on_zookeeper(Kind::KAZOO),
        "ZooKeeper",
        "the program counts Python, its standard library and kazoo",
    );
    let tooz = Row::of(
        servers.on_zookeeper(Kind::TOOZ),
        "ZooKeeper",
        "its driver for ZooKeeper, asked every 100 ms as in the example of its documentation; it tells nobody that a \
         leadership is over, so what counts as its claim is what it goes by itself; the program counts Python and \
         what tooz needs",
    );
    let election = EtcdElection::on(servers.etcd.port());
    let program = vec![election.program().clone()];
    let election = Row::of(
        election,
        "etcd",
        "`clientv3/concurrency`, of which `etcdctl elect` is made; `etcdctl` itself takes no ttl",
    );
    let global = Row::of(
        Global::open(),
        "Erlang nodes",
        "it has no lease; a `net_ticktime` of 2 s takes the place of the ttl, and nodes that are not connected are \
         looked for every second; it claims to lead while `global:whereis_name` names its own process; the program \
         is Debian's `erlang-base`",
    );
    Ok(vec![
        curator.with_program(java()?),
        kazoo.with_program(python(&PathBuf::from("/usr/lib/python3/dist-packages/kazoo"))),
        tooz.with_program(python(&others::environment().join("lib"))),
        election.with_program(program),
        global.with_program(vec![PathBuf::from("/usr/lib/erlang")]),
    ])
}

fn designs(servers: &Servers) -> Vec<Row<'_>> {
    const NOTE: &str = "one of the designs that Tenure began from; the loop around its statements was written for this \
                        bench, with its pauses in proportion to the ttl; it has no way to give up its place";
    let advisory = Row::of(
        servers.on_postgres("advisory lock, polled", advisory::POLLS),
        "PostgreSQL",
        "it hangs from a connection and has no ttl: a crash frees it as soon as the system closes the connection, and \
         a pause or a cut does not free it; written for this bench, asked every 100 ms",
    );
    let designs = [
        Row::of(servers.on_postgres("lease in a row", &["lease"]), "PostgreSQL", NOTE),
        Row::of(servers.on_mariadb("lock in a row", &["locks"]), "MariaDB", NOTE),
        Row::of(servers.on_mariadb("lock with an epoch", &["helix"]), "MariaDB", NOTE),
    ];
    let mut rows = vec![advisory];
    rows.extend(designs.map(|row| Row { resigns: false, ..row }));
    rows
}

/// This bench's own program, as it would be installed: without what only a debugger reads.
fn stripped() -> Outcome<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare-stripped");
    let done = Command::new("strip").arg("-o").arg(&program).arg(std::env::current_exe()?).status()?;
    if done.success() { Ok(program) } else { Err("the program cannot be stripped".into()) }
}

/// The runtime's classes and its virtual machine, of the `java` that is found first; and the jars.
fn java() -> Outcome<Vec<PathBuf>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let java =
        std::env::split_paths(&path).map(|directory| directory.join("java")).find(|java| java.is_file());
    let java = java.ok_or("there is no java")?.canonicalize()?;
    let home = java.parent().and_then(Path::parent).ok_or("java is nowhere")?;
    let mut program = vec![home.join("lib/modules"), home.join("lib/server")];
    program.extend(others::jars());
    Ok(program)
}

/// Debian's Python with its standard library, and what comes on top.
fn python(library: &Path) -> Vec<PathBuf> {
    vec![PathBuf::from("/usr/bin/python3"), PathBuf::from("/usr/lib/python3.11"), library.to_owned()]
}
