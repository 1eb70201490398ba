//! Where databases lie while they are measured.

use std::fmt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Outcome;

const TMPFS: i64 = 0x0102_1994;

/// A directory that is gone when this is dropped.
pub struct Place {
    directory: TempDir,
    in_memory: bool,
}

impl Place {
    /// In the target directory. The system's directory for temporary files may be in memory, where
    /// a durable write costs nothing.
    pub fn on_disk() -> Outcome<Self> {
        let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
        std::fs::create_dir_all(parent)?;
        let place = Self::within(parent)?;
        if place.in_memory {
            println!("NOT ON A DISK: {place}; figures of durable writes mean nothing here");
        }
        Ok(place)
    }

    /// Where writes are not durable, and cheap: for what would take too long on a disk. `None`
    /// where there is no such place.
    pub fn in_memory() -> Option<Self> {
        Self::within(Path::new("/dev/shm")).ok().filter(|place| place.in_memory)
    }

    fn within(parent: &Path) -> Outcome<Self> {
        let directory = tempfile::Builder::new().prefix("tenure-bench-").tempdir_in(parent)?;
        let in_memory = rustix::fs::statfs(directory.path())?.f_type == TMPFS;
        Ok(Self { directory, in_memory })
    }

    pub fn database(&self) -> PathBuf {
        self.directory.path().join("tenure.db")
    }

    pub fn floor(&self) -> PathBuf {
        self.directory.path().join("floor.db")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.in_memory { "memory (tmpfs)" } else { "disk" };
        write!(f, "{} on {kind}", self.directory.path().display())
    }
}
