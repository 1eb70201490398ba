//! A server's own directory.

use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use tempfile::TempDir;

/// Where Linux keeps files in memory.
const MEMORY: &str = "/dev/shm";
/// Room for all the servers of the tests that run at a time.
const ENOUGH: u64 = 2 << 30;

/// A directory for one server, gone when dropped.
pub(super) struct Home {
    directory: TempDir,
    /// Closed when we end, however that happens.
    _keeper: Option<ChildStdin>,
}

impl Home {
    /// On disk: what is synced there takes as long as it takes.
    pub(super) fn on_disk(prefix: &str) -> Self {
        let directory = TempDir::with_prefix(prefix).expect("there is a place for temporary files");
        Self { directory, _keeper: None }
    }

    /// In memory, if there is room: for whoever wants nothing synced. Settings do not keep MariaDB from it when it
    /// defines tables.
    pub(super) fn in_memory(prefix: &str) -> Self {
        let room = rustix::fs::statvfs(MEMORY).map_or(0, |memory| memory.f_bavail * memory.f_frsize);
        if room < ENOUGH {
            return Self::on_disk(prefix);
        }
        let directory = TempDir::with_prefix_in(prefix, MEMORY).expect("there is room in memory");
        let keeper = keeper(directory.path());
        Self { directory, _keeper: Some(keeper) }
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// Removes the directory when we end: also if a test is killed, it does not stay in memory.
fn keeper(directory: &Path) -> ChildStdin {
    let script = "trap '' INT TERM HUP; read -r _; rm -rf \"$0\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(directory).stdin(Stdio::piped());
    let shell = shell.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    shell.ok().and_then(|shell| shell.stdin).expect("a shell can be started")
}
