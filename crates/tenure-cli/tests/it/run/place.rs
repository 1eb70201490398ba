//! The store that a test meets in, and how it is taken away. All that the tests know of its kind.
#![allow(dead_code, reason = "every test target uses its own part of it")]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::{MariaDb, Postgres, ZooKeeper, free_port};

/// Which kind of store.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// A server of our own.
    Postgres,
    /// Another.
    MySql,
    /// And another.
    ZooKeeper,
    /// A process of our own command.
    Raft,
}

/// A store of this kind.
pub enum Place {
    File(PathBuf),
    Postgres(RefCell<Postgres>),
    MySql(RefCell<MariaDb>),
    ZooKeeper(RefCell<ZooKeeper>),
    Raft(RefCell<Witness>),
}

impl Place {
    pub fn new(kind: Kind, directory: &Path) -> Self {
        match kind {
            Kind::Sqlite => Self::File(directory.join("tenure.db")),
            Kind::Postgres => Self::Postgres(RefCell::new(Postgres::start())),
            Kind::MySql => Self::MySql(RefCell::new(MariaDb::start())),
            Kind::ZooKeeper => Self::ZooKeeper(RefCell::new(ZooKeeper::start())),
            Kind::Raft => Self::Raft(RefCell::new(Witness::alone(directory))),
        }
    }

    pub fn url(&self) -> String {
        match self {
            Self::File(path) => format!("sqlite:{}", path.display()),
            Self::Postgres(server) => server.borrow().url(),
            Self::MySql(server) => server.borrow().url_as("keeper:secret"),
            Self::ZooKeeper(servers) => servers.borrow().url_as("app:secret"),
            Self::Raft(witness) => witness.borrow().group.clone(),
        }
    }

    /// A proxy before its server, and the URL of the store by way of it.
    pub fn by_proxy(&self) -> (Proxy, String) {
        let port = match self {
            Self::Postgres(server) => server.borrow().port(),
            Self::MySql(server) => server.borrow().port(),
            _ => panic!("no test has a proxy before this store"),
        };
        let proxy = Proxy::before(port);
        let url = self.url().replace(&format!(":{port}/"), &format!(":{}/", proxy.port()));
        (proxy, url)
    }

    /// Tells the request to its server by which a session is closed.
    pub fn is_closing(&self) -> impl FnMut(&[u8]) -> bool + Send + use<> {
        let words: &[u8] = match self {
            Self::Postgres(_) => b".close($1",
            Self::MySql(_) => b"CALL tenure_close(",
            _ => panic!("no test has a proxy before this store"),
        };
        move |said| said.windows(words.len()).any(|window| window == words)
    }

    /// The database of a store that is a file.
    pub fn file(&self) -> &Path {
        match self {
            Self::File(path) => path,
            _ => panic!("this store is a server"),
        }
    }

    /// Nobody reaches it any more.
    pub fn take_away(&self) {
        match self {
            Self::File(path) => std::fs::rename(path, path.with_extension("away")).unwrap(),
            Self::Postgres(server) => server.borrow_mut().stop(),
            Self::MySql(server) => server.borrow_mut().stop(),
            Self::ZooKeeper(servers) => servers.borrow_mut().kill(0),
            Self::Raft(witness) => witness.borrow_mut().kill(),
        }
    }

    /// It is back, as it was.
    pub fn bring_back(&self) {
        match self {
            Self::File(path) => std::fs::rename(path.with_extension("away"), path).unwrap(),
            Self::Postgres(server) => server.borrow_mut().launch(),
            Self::MySql(server) => server.borrow_mut().launch(),
            Self::ZooKeeper(servers) => servers.borrow_mut().launch(0),
            Self::Raft(witness) => witness.borrow_mut().launch(),
        }
    }
}

/// A member of a group that does nothing else: `tenure witness`. Killed when dropped.
pub struct Witness {
    group: String,
    address: String,
    data: PathBuf,
    process: Option<Child>,
}

impl Witness {
    /// A group of one.
    fn alone(directory: &Path) -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        Self::start(&format!("raft://{address}"), &address, directory)
    }

    /// The member of this group at this address.
    pub fn start(group: &str, address: &str, directory: &Path) -> Self {
        let data = directory.join(format!("member-{address}"));
        let mut witness = Self { group: group.to_owned(), address: address.to_owned(), data, process: None };
        witness.launch();
        witness
    }

    /// It is there again, on what its disk has kept.
    pub fn launch(&mut self) {
        // It ends with the thread that starts it, however that ends.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", env!("CARGO_BIN_EXE_tenure"), "witness"]);
        command.args(["--store", &self.group, "--raft-listen", &self.address, "--data"]).arg(&self.data);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.process = Some(command.spawn().unwrap());
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.kill();
    }
}
