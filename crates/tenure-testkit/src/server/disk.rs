//! A small disk of a server's own, in memory.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::succeed;

/// A file system that is full when told so. Unmounted when dropped.
pub struct Disk {
    place: PathBuf,
}

impl Disk {
    /// Mounts one of so many megabytes.
    ///
    /// # Panics
    /// If this is not allowed: it needs root.
    #[must_use]
    pub fn mounted(place: &Path, megabytes: u32) -> Self {
        let size = format!("size={megabytes}m");
        succeed(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(place));
        Self { place: place.to_owned() }
    }

    fn ballast(&self) -> PathBuf {
        self.place.join("ballast")
    }

    /// Leaves no room.
    ///
    /// # Panics
    /// If there is more room than it should have.
    pub fn fill(&self) {
        let mut file =
            File::options().create(true).append(true).open(self.ballast()).expect("a file can be made");
        for block in [1 << 20, 1 << 12, 1] {
            let bytes = vec![0; block];
            let full = loop {
                if let Err(error) = file.write_all(&bytes) {
                    break error;
                }
            };
            assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
        }
    }

    /// Makes room again.
    ///
    /// # Panics
    /// If it was not filled.
    pub fn free(&self) {
        std::fs::remove_file(self.ballast()).expect("it was filled");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What still runs there keeps it until it ends.
        let _ = Command::new("umount").arg("--lazy").arg(&self.place).status();
    }
}
