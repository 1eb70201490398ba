//! A private PostgreSQL.

use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::process::{as_user, children, free_port, give, installed, succeed, until_gone, until_ready};

const USER: &str = "postgres";
const PLACES: [&str; 5] = [
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/18/bin",
    "/usr/bin",
];

/// A PostgreSQL server of our own.
pub struct Postgres {
    directory: TempDir,
    port: u16,
    server: Option<Child>,
    settings: Vec<String>,
}

impl Postgres {
    /// Starts one with an empty database. Nothing is synced to disk: for tests that do not kill it.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&["fsync=off"])
    }

    /// The same with these settings.
    ///
    /// # Panics
    /// As for [`Postgres::start`].
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Self {
        Self::made(settings, &[], &["-A", "trust"])
    }

    /// One that encrypts connections, with this certificate and its key (PEM).
    ///
    /// # Panics
    /// As for [`Postgres::start`].
    #[must_use]
    pub fn start_encrypted(certificate: &str, key: &str) -> Self {
        let files = [("server.crt", certificate), ("server.key", key)];
        let settings = ["fsync=off", "ssl=on", "ssl_cert_file=../server.crt", "ssl_key_file=../server.key"];
        Self::made(&settings, &files, &["-A", "trust"])
    }

    /// One that lets nobody in without this password.
    ///
    /// # Panics
    /// As for [`Postgres::start`].
    #[must_use]
    pub fn start_protected(password: &str) -> Self {
        let files = [("password", password)];
        Self::made(&["fsync=off"], &files, &["-A", "scram-sha-256", "--pwfile", "password"])
    }

    /// With these files beside its data, which nobody but the server may read.
    fn made(settings: &[&str], files: &[(&str, &str)], options: &[&str]) -> Self {
        let directory = TempDir::with_prefix("tenure-pg-").expect("there is a place for temporary files");
        for (name, text) in files {
            let path = directory.path().join(name);
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path);
            let written = file.as_mut().map(|file| file.write_all(text.as_bytes()));
            assert!(matches!(written, Ok(Ok(()))), "{} cannot be written", path.display());
            give(&path, USER);
        }
        give(directory.path(), USER);
        let mut initdb = as_user(USER, &program("initdb"));
        initdb.current_dir(directory.path()).args(options);
        initdb.arg("-D").arg(directory.path().join("data"));
        initdb.args(["-U", USER, "-E", "UTF8", "--no-locale", "--no-sync"]);
        succeed(&mut initdb);
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut postgres = Self { directory, port: free_port(), server: None, settings };
        postgres.launch();
        postgres
    }

    /// A replica of this server, which follows it.
    ///
    /// # Panics
    /// If it cannot be made, or does not start.
    #[must_use]
    pub fn replica(&self) -> Self {
        let directory = TempDir::with_prefix("tenure-pg-").expect("there is a place for temporary files");
        give(directory.path(), USER);
        let mut backup = as_user(USER, &program("pg_basebackup"));
        backup.arg("-D").arg(directory.path().join("data"));
        backup.args(["-R", "-X", "stream", "-c", "fast", "--no-sync"]);
        backup.args(["-h", "127.0.0.1", "-U", USER, "-p", &self.port.to_string()]);
        succeed(&mut backup);
        let settings = self.settings.clone();
        let mut replica = Self { directory, port: free_port(), server: None, settings };
        replica.launch();
        replica
    }

    /// Where it listens.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts it again as a replica, which nobody promotes.
    ///
    /// # Panics
    /// If it does not start.
    pub fn demote(&mut self) {
        self.stop();
        let signal = self.data().join("standby.signal");
        File::create(&signal).expect("the server's data can be written");
        give(&signal, USER);
        self.launch();
    }

    /// Starts the server on its data, on the same port as before.
    ///
    /// # Panics
    /// If it does not start.
    pub fn launch(&mut self) {
        let log = self.directory.path().join("log");
        let file = File::options().create(true).append(true).open(&log).expect("the log can be written");
        let mut command = as_user(USER, &program("postgres"));
        command.arg("-D").arg(self.data()).args(["-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", &format!("port={}", self.port), "-c", "unix_socket_directories="]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        // The log goes on over starts: an earlier line does not count.
        let before = std::fs::read_to_string(&log).unwrap_or_default().matches(READY).count();
        let errors = file.try_clone().expect("a file can be opened twice");
        let mut server = command.stdout(file).stderr(errors).spawn().expect("the server can be started");
        let port = self.port;
        // A server that is still starting refuses with an error of its own, which is no answer yet.
        let ready = || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
                && std::fs::read_to_string(&log).is_ok_and(|said| said.matches(READY).count() > before)
        };
        until_ready(&mut server, &log, ready);
        self.server = Some(server);
    }

    /// Where its data is.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
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
        let child = self.server.as_ref().expect("it runs");
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process has a number");
        kill_process(pid, signal).expect("it runs");
    }

    /// Ends the server at once, and waits until it has.
    pub fn stop(&mut self) {
        if self.server.is_some() {
            self.signal(Signal::QUIT);
        }
        self.wait();
    }

    /// Kills the server with everything that belongs to it, as a machine that stops does.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&mut self) {
        let server = self.server.as_ref().expect("it runs").id();
        let workers = children(server);
        self.signal(Signal::KILL);
        self.wait();
        // They end by themselves when they notice; until then, no other server can have their memory.
        until_gone(&workers);
    }

    fn wait(&mut self) {
        if let Some(mut child) = self.server.take() {
            // It ends with us at the latest.
            let _ = child.wait();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What a server writes to its log when it is there; of a replica, "read-only" follows.
const READY: &str = "ready to accept";

fn program(name: &str) -> PathBuf {
    let found = installed("postgresql-15", &PLACES, name);
    debug_assert!(Path::new(&found).is_absolute(), "a program is found by its whole path");
    found
}
