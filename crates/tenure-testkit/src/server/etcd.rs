//! A private etcd, to measure beside: its own election is the one that people compare with.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::process::{Running, free_port, installed, plain};

/// A single etcd on the loopback, with everything synced to its own directory.
pub struct Etcd {
    port: u16,
    _server: Running,
    _directory: TempDir,
}

impl Etcd {
    /// Starts one, and waits until it answers.
    ///
    /// # Panics
    /// If it is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        let directory = TempDir::with_prefix("tenure-etcd-").expect("there is a place for temporary files");
        let (port, peers) = (free_port(), format!("http://127.0.0.1:{}", free_port()));
        let clients = format!("http://127.0.0.1:{port}");
        let log = directory.path().join("log");
        let mut command = plain(&installed("etcd-server", &["/usr/bin"], "etcd"));
        command.args(["--name", "n1", "--initial-cluster-state", "new"]);
        command.arg("--data-dir").arg(directory.path().join("data"));
        command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("n1={peers}")]);
        let mut server = Running::start(&mut command, &log);
        server.until_ready(&log, || {
            let mut health = Self::client(port);
            health.args(["endpoint", "health"]).stdout(Stdio::null()).stderr(Stdio::null());
            health.status().is_ok_and(|status| status.success())
        });
        Self { port, _server: server, _directory: directory }
    }

    /// Where clients reach it, on the loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    fn client(port: u16) -> Command {
        let program: PathBuf = installed("etcd-client", &["/usr/bin"], "etcdctl");
        let mut command = plain(&program);
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints=127.0.0.1:{port}"));
        command
    }
}
