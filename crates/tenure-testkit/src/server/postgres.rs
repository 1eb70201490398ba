//! A private PostgreSQL.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use super::clock::Clock;
use super::disk::Disk;
use super::home::Home;
use super::process::{
    Running, as_user, children, free_port, give, installed, keep, said, succeed, until_gone,
};
use super::template;

const USER: &str = "postgres";
/// Of those who want nothing synced.
const UNSYNCED: &str = "fsync=off";
const PLACES: [&str; 5] = [
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/18/bin",
    "/usr/bin",
];

/// A PostgreSQL server of our own.
pub struct Postgres {
    /// Gone before the directory that it is in.
    disk: Option<Disk>,
    directory: Home,
    port: u16,
    server: Option<Running>,
    settings: Vec<String>,
    clock: Option<Clock>,
}

impl Postgres {
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
    /// As for [`Postgres::start`].
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Self {
        Self::made(settings, &[], None, trusting)
    }

    /// One that encrypts connections, with this certificate and its key (PEM).
    ///
    /// # Panics
    /// As for [`Postgres::start`].
    #[must_use]
    pub fn start_encrypted(certificate: &str, key: &str) -> Self {
        let files = [("server.crt", certificate), ("server.key", key)];
        let settings = [UNSYNCED, "ssl=on", "ssl_cert_file=../server.crt", "ssl_key_file=../server.key"];
        Self::made(&settings, &files, None, trusting)
    }

    /// One that lets nobody in without this password.
    ///
    /// # Panics
    /// As for [`Postgres::start`].
    #[must_use]
    pub fn start_protected(password: &str) -> Self {
        let options = ["-A", "scram-sha-256", "--pwfile", "password"];
        Self::made(&[UNSYNCED], &[("password", password)], None, |place| initdb(place, &options))
    }

    /// One whose wall clock can be set: see [`Postgres::set_clock`].
    ///
    /// # Panics
    /// As for [`Postgres::start`]; or if libfaketime is not installed.
    #[must_use]
    pub fn start_with_a_clock() -> Self {
        let mut server = Self::start();
        server.stop();
        server.clock = Some(Clock::new(&server.directory.join("clock")));
        server.launch();
        server
    }

    /// One that keeps everything on a small disk of its own: see [`Postgres::fill_the_disk`].
    ///
    /// # Panics
    /// As for [`Postgres::start`]; or if we may not mount a file system.
    #[must_use]
    pub fn start_on_a_small_disk() -> Self {
        let settings = [UNSYNCED, "min_wal_size=32MB", "max_wal_size=32MB"];
        Self::made(&settings, &[], Some(128), trusting)
    }

    /// With these files beside its data, which nobody but the server may read; and with data that this puts there.
    fn made(
        settings: &[&str],
        files: &[(&str, &str)],
        megabytes: Option<u32>,
        data: impl FnOnce(&Path),
    ) -> Self {
        let home = if settings.contains(&UNSYNCED) { Home::in_memory } else { Home::on_disk };
        let directory = home("tenure-pg-");
        let disk = megabytes.map(|megabytes| Disk::mounted(directory.path(), megabytes));
        give(directory.path(), USER);
        keep(directory.path(), files, USER);
        data(directory.path());
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut postgres = Self { disk, directory, port: free_port(), server: None, settings, clock: None };
        postgres.launch();
        postgres
    }

    /// A replica of this server, which follows it.
    ///
    /// # Panics
    /// If it cannot be made, or does not start.
    #[must_use]
    pub fn replica(&self) -> Self {
        let directory = Home::in_memory("tenure-pg-");
        give(directory.path(), USER);
        let mut backup = as_user(USER, &program("pg_basebackup"));
        backup.arg("-D").arg(directory.join("data"));
        backup.args(["-R", "-X", "stream", "-c", "fast", "--no-sync"]);
        backup.args(["-h", "127.0.0.1", "-U", USER, "-p", &self.port.to_string()]);
        succeed(&mut backup);
        let settings = self.settings.clone();
        let mut replica =
            Self { disk: None, directory, port: free_port(), server: None, settings, clock: None };
        replica.launch();
        replica
    }

    /// A new server, into which a dump of this one's database was restored.
    ///
    /// # Panics
    /// If it does not start, or something cannot be dumped or restored.
    #[must_use]
    pub fn restored(&self) -> Self {
        let new = Self::start_with(&self.settings.iter().map(String::as_str).collect::<Vec<_>>());
        let file = new.directory.join("dump");
        let client = |name: &str, server: &Self| {
            let mut command = as_user(USER, &program(name));
            command.args(["-h", "127.0.0.1", "-U", USER, "-p", &server.port.to_string(), "-f"]).arg(&file);
            command
        };
        succeed(client("pg_dump", self).arg("postgres"));
        succeed(client("psql", &new).args(["-q", "-v", "ON_ERROR_STOP=1", "postgres"]));
        new
    }

    /// Where it listens.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts the server on its data, on the same port as before.
    ///
    /// # Panics
    /// If it does not start.
    pub fn launch(&mut self) {
        let log = self.directory.join("log");
        let mut command = as_user(USER, Path::new("/usr/bin/env"));
        if let Some(clock) = &self.clock {
            command.args(clock.words());
        }
        command
            .arg(program("postgres"))
            .arg("-D")
            .arg(self.data())
            .args(["-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", &format!("port={}", self.port), "-c", "unix_socket_directories="]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let before = said(&log, READY);
        let mut server = Running::start(&mut command, &log);
        let port = self.port;
        // A server that is still starting refuses with an error of its own, which is no answer yet.
        server.until_ready(&log, || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() && said(&log, READY) > before
        });
        self.server = Some(server);
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

    /// Makes room again, and starts the server if it has ended meanwhile.
    ///
    /// # Panics
    /// If it has no disk of its own, or does not start.
    pub fn free_the_disk(&mut self) {
        self.disk.as_ref().expect("it was started on a disk").free();
        let open = || TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        // One that is about to end may still answer: what it says last decides.
        while !self.server.as_mut().is_none_or(Running::has_ended) && !open() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if self.server.as_mut().is_none_or(Running::has_ended) {
            self.server = None;
            self.launch();
        }
    }

    /// Where its data is.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// What it has written to its log.
    ///
    /// # Panics
    /// If that cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).expect("the log can be read")
    }

    /// The port that it listens on.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The store URL of its only database.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_by(self.port)
    }

    /// The same by way of another port: that of a [`Proxy`](crate::proxy::Proxy).
    #[must_use]
    pub fn url_by(&self, port: u16) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/postgres")
    }

    /// The same for this user, or for `user:password`.
    #[must_use]
    pub fn url_as(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/postgres", self.port)
    }

    /// Signals the server.
    ///
    /// # Panics
    /// If it does not run.
    pub fn signal(&self, signal: Signal) {
        self.server.as_ref().expect("it runs").signal(signal);
    }

    /// Signals the server and everything that belongs to it: with `STOP` it hears and says nothing, and all
    /// its connections stay open, until `CONT`.
    ///
    /// # Panics
    /// If it does not run.
    pub fn signal_all(&self, signal: Signal) {
        self.signal(signal);
        for worker in children(self.server.as_ref().expect("it runs").id()) {
            let pid = i32::try_from(worker).ok().and_then(Pid::from_raw).expect("a process has a number");
            // One that has just ended hears nothing either.
            let _ = kill_process(pid, signal);
        }
    }

    /// Ends the server at once, and waits until it has.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.as_ref() {
            server.signal(Signal::QUIT);
            // A test that failed may have stopped it.
            self.signal_all(Signal::CONT);
        }
        if let Some(server) = self.server.take() {
            server.end(Signal::QUIT);
        }
    }

    /// Kills the server with everything that belongs to it, as a machine that stops does.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&mut self) {
        let workers = children(self.server.as_ref().expect("it runs").id());
        self.server = None;
        // They end by themselves when they notice; until then, no other server can have their memory.
        until_gone(&workers);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What a server writes to its log when it is there; of a replica, "read-only" follows.
const READY: &str = "ready to accept";

/// Data of a server that asks nobody for a password.
fn trusting(directory: &Path) {
    template::copied(&program("initdb"), include_str!("postgres.rs"), directory, |place| {
        give(place, USER);
        initdb(place, &["-A", "trust"]);
    });
}

fn initdb(directory: &Path, options: &[&str]) {
    let mut initdb = as_user(USER, &program("initdb"));
    initdb.current_dir(directory).args(options).arg("-D").arg(directory.join("data"));
    initdb.args(["-U", USER, "-E", "UTF8", "--no-locale", "--no-sync"]);
    succeed(&mut initdb);
}

fn program(name: &str) -> PathBuf {
    let found = installed("postgresql-15", &PLACES, name);
    debug_assert!(Path::new(&found).is_absolute(), "a program is found by its whole path");
    found
}
