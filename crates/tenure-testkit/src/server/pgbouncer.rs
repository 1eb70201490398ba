//! A private PgBouncer in transaction mode, in front of a PostgreSQL.

use std::net::{Ipv4Addr, TcpStream};

use rustix::process::Signal;
use tempfile::TempDir;

use super::Postgres;
use super::process::{Running, as_user, free_port, give, installed};

/// It refuses to be root, like the server.
const USER: &str = "postgres";

/// A pool that gives each transaction another connection, in turn: nothing that rests on a database session
/// survives it.
pub struct PgBouncer {
    /// Gone before its directory.
    pool: Option<Running>,
    directory: TempDir,
    port: u16,
}

impl PgBouncer {
    /// A pool before this server, for the users `postgres` and `app`.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    #[must_use]
    pub fn before(server: &Postgres) -> Self {
        let directory = TempDir::with_prefix("tenure-pool-").expect("there is a place for temporary files");
        let port = free_port();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\n\
             server_round_robin = 1\nmin_pool_size = 3\n",
            server.port(),
            directory.path().join("users").display(),
        );
        for (name, text) in [("settings", settings.as_str()), ("users", "\"postgres\" \"\"\n\"app\" \"\"\n")]
        {
            std::fs::write(directory.path().join(name), text).expect("a file can be written");
        }
        give(directory.path(), USER);
        let mut pool = Self { directory, port, pool: None };
        pool.launch();
        pool
    }

    /// Starts it, on the same port as before.
    ///
    /// # Panics
    /// If it does not start.
    pub fn launch(&mut self) {
        let log = self.directory.path().join("log");
        let program = installed("pgbouncer", &["/usr/sbin", "/usr/bin"], "pgbouncer");
        let mut command = as_user(USER, &program);
        command.arg(self.directory.path().join("settings"));
        let mut pool = Running::start(&mut command, &log);
        let port = self.port;
        pool.until_ready(&log, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        self.pool = Some(pool);
    }

    /// Ends it at once, with all connections through it, and waits until it has.
    pub fn stop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.end(Signal::TERM);
        }
    }

    /// The port that it listens on.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}
