//! A private MariaDB server, or a MySQL server in its place.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use super::clock::Clock;
use super::disk::Disk;
use super::home::Home;
use super::process::{Running, as_user, free_port, give, installed, is_root, keep, said, succeed};
use super::template;

const USER: &str = "mysql";
const PLACES: [&str; 3] = ["/usr/sbin", "/usr/bin", "/usr/local/bin"];
/// The environment variable that names a `mysqld`. If it is set, every server is that MySQL instead of MariaDB.
const MYSQLD: &str = "TENURE_TEST_MYSQLD";
/// Of those who want nothing synced.
const UNSYNCED: &str = "innodb-flush-log-at-trx-commit=0";
/// Options of MariaDB that keep it small.
const MARIADB_OPTIONS: [&str; 2] = ["--innodb-log-file-size=4M", "--performance-schema=off"];
/// Options that make MySQL as small as MariaDB. By default it also opens a second port, writes a binary log, generates a
/// certificate, and requires a directory that its package creates.
const MYSQL_OPTIONS: [&str; 5] = [
    "--innodb-redo-log-capacity=8M",
    "--mysqlx=off",
    "--skip-log-bin",
    "--auto-generate-certs=off",
    "--secure-file-priv=NULL",
];
/// The only database.
const DATABASE: &str = "tenure";
/// What a new server is told. Not in its log: a replica of it was told the same.
const FIRST: &str = "\
SET sql_log_bin = 0;
CREATE DATABASE tenure;
CREATE USER owner@'%';
GRANT ALL ON *.* TO owner@'%' WITH GRANT OPTION;
CREATE USER keeper@'%' IDENTIFIED BY 'secret';
GRANT ALL ON *.* TO keeper@'%';
";

/// A MariaDB server of our own, with one database and one user with all rights, who has no password.
pub struct MariaDb {
    /// Gone before its directory.
    server: Option<Running>,
    /// Gone before the directory that it is in.
    disk: Option<Disk>,
    directory: Home,
    port: u16,
    settings: Vec<String>,
    clock: Option<Clock>,
}

impl MariaDb {
    /// Starts one with an empty database. Nothing is synced to disk: for tests that do not kill it.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[UNSYNCED])
    }

    /// The same with these settings.
    ///
    /// # Panics
    /// As for [`MariaDb::start`].
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Self {
        Self::made(settings, &[], None)
    }

    /// One that encrypts connections, with this certificate and its key (PEM).
    ///
    /// # Panics
    /// As for [`MariaDb::start`].
    #[must_use]
    pub fn start_encrypted(certificate: &str, key: &str) -> Self {
        let files = [("server.crt", certificate), ("server.key", key)];
        let settings = [UNSYNCED, "ssl-cert=../server.crt", "ssl-key=../server.key"];
        Self::made(&settings, &files, None)
    }

    /// One whose wall clock can be set (see [`MariaDb::set_clock`]), and shows so many seconds more than ours, or
    /// less, when it starts; with these settings.
    ///
    /// # Panics
    /// As for [`MariaDb::start`]; or if libfaketime is not installed.
    #[must_use]
    pub fn start_with_a_clock(settings: &[&str], seconds: i64) -> Self {
        let mut server = Self::start_with(&[&[UNSYNCED], settings].concat());
        server.stop();
        server.clock = Some(Clock::new(&server.directory.join("clock")));
        server.set_clock(seconds);
        server.launch();
        server
    }

    /// One that keeps everything on a small disk of its own: see [`MariaDb::fill_the_disk`].
    ///
    /// # Panics
    /// As for [`MariaDb::start`]; or if we may not mount a file system.
    #[must_use]
    pub fn start_on_a_small_disk(settings: &[&str]) -> Self {
        Self::made(settings, &[], Some(128))
    }

    /// With these files beside its data, which nobody but the server may read.
    fn made(settings: &[&str], files: &[(&str, &str)], megabytes: Option<u32>) -> Self {
        let home = if settings.contains(&UNSYNCED) { Home::in_memory } else { Home::on_disk };
        let directory = home("tenure-my-");
        let disk = megabytes.map(|megabytes| Disk::mounted(directory.path(), megabytes));
        give(directory.path(), USER);
        keep(directory.path(), files, USER);
        keep(directory.path(), &[("first.sql", FIRST)], USER);
        let recipe = include_str!("mariadb.rs");
        match mysqld() {
            Some(mysqld) => {
                template::copied(&mysqld, recipe, directory.path(), |directory| {
                    initialize(&mysqld, directory)
                });
            }
            None => template::copied(&program("mariadb-install-db"), recipe, directory.path(), install),
        }
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut mariadb = Self { server: None, disk, directory, port: free_port(), settings, clock: None };
        mariadb.launch_with(&[option("init-file", &mariadb.directory.join("first.sql"))]);
        mariadb
    }

    /// Starts the server on its data, on the same port as before.
    ///
    /// # Panics
    /// If it does not start.
    pub fn launch(&mut self) {
        self.launch_with(&[]);
    }

    fn launch_with(&mut self, more: &[String]) {
        let log = self.directory.join("log");
        let mut command = as_user(USER, Path::new("/usr/bin/env"));
        if let Some(clock) = &self.clock {
            // In a zone with daylight saving, so that whoever asks for local time would see it.
            command.args(clock.words()).arg("TZ=Europe/Berlin");
            if Self::is_mysql() {
                // Otherwise its timed waits on the monotonic clock end at once, and its threads are busy waiting.
                command.arg("FAKETIME_FORCE_MONOTONIC_FIX=0");
            }
        }
        command.arg(mysqld().unwrap_or_else(|| program("mariadbd")));
        // The first of all options.
        command.arg("--no-defaults").arg(option("datadir", &self.data()));
        command
            .arg(format!("--port={}", self.port))
            .args(["--bind-address=127.0.0.1", "--skip-name-resolve"]);
        command.arg(option("socket", &self.directory.join("s")));
        command.arg(option("tmpdir", self.directory.path()));
        command.arg(option("pid-file", &self.directory.join("pid")));
        command.arg("--innodb-buffer-pool-size=32M");
        command.args(if Self::is_mysql() { MYSQL_OPTIONS.as_slice() } else { &MARIADB_OPTIONS });
        for setting in &self.settings {
            command.arg(format!("--{setting}"));
        }
        command.args(more);
        let before = said(&log, READY);
        let mut server = Running::start(&mut command, &log);
        server.until_ready(&log, || said(&log, READY) > before);
        self.server = Some(server);
    }

    /// Whether the servers are MySQL instead of MariaDB.
    #[must_use]
    pub fn is_mysql() -> bool {
        mysqld().is_some()
    }

    /// Its wall clock shows so many seconds more than ours, or less, from now on.
    ///
    /// # Panics
    /// If it has no clock of its own.
    pub fn set_clock(&self, seconds: i64) {
        self.clock.as_ref().expect("it was started with a clock").set(seconds);
    }

    /// Leaves no room on its disk.
    ///
    /// # Panics
    /// If it has no disk of its own.
    pub fn fill_the_disk(&self) {
        self.disk.as_ref().expect("it was started on a disk").fill();
    }

    /// Makes room again.
    ///
    /// # Panics
    /// If it has no disk of its own.
    pub fn free_the_disk(&self) {
        self.disk.as_ref().expect("it was started on a disk").free();
    }

    /// Where its data is.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// The port that it listens on.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The store URL of its only database, for its owner.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_by(self.port)
    }

    /// The same by way of another port: that of a [`Proxy`](crate::proxy::Proxy).
    #[must_use]
    pub fn url_by(&self, port: u16) -> String {
        format!("mysql://owner@127.0.0.1:{port}/{DATABASE}")
    }

    /// The same for this user, or for `user:password`; there is a `keeper:secret`.
    #[must_use]
    pub fn url_as(&self, user: &str) -> String {
        format!("mysql://{user}@127.0.0.1:{}/{DATABASE}", self.port)
    }

    /// Signals the server.
    ///
    /// # Panics
    /// If it does not run.
    pub fn signal(&self, signal: Signal) {
        self.server.as_ref().expect("it runs").signal(signal);
    }

    /// Ends the server in good order, and waits until it has.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.end(Signal::TERM);
        }
    }

    /// Kills the server, as a machine that stops does.
    pub fn kill(&mut self) {
        self.server = None;
    }
}

/// What a server writes to its log when it is there.
const READY: &str = "ready for connections";

/// The MySQL server to test instead of MariaDB, if one is named.
fn mysqld() -> Option<PathBuf> {
    std::env::var_os(MYSQLD).map(PathBuf::from)
}

/// The system tables of MySQL.
fn initialize(mysqld: &Path, directory: &Path) {
    give(directory, USER);
    let data = directory.join("data");
    let mut command = as_user(USER, mysqld);
    command.args(["--no-defaults", "--initialize-insecure"]).arg(option("datadir", &data));
    succeed(command.args(MYSQL_OPTIONS));
    // It holds the server's UUID. Each copy generates its own when it starts.
    std::fs::remove_file(data.join("auto.cnf")).expect("a new server has a UUID");
}

/// The tables that a server has of its own.
fn install(directory: &Path) {
    give(directory, USER);
    let mut install = Command::new(program("mariadb-install-db"));
    install.arg("--no-defaults").arg(option("datadir", &directory.join("data")));
    if is_root() {
        install.arg(format!("--user={USER}"));
    }
    install.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
    install.args(["--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0"]);
    // Two of them take each other's temporary tables away otherwise.
    install.arg(option("tmpdir", directory));
    succeed(&mut install);
}

fn option(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn program(name: &str) -> PathBuf {
    installed("mariadb-server", &PLACES, name)
}
