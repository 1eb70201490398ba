//! A server's own wall clock, by libfaketime.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Its monotonic clocks are not touched: a person who sets the time does not touch them either.
pub(super) struct Clock {
    file: PathBuf,
    library: String,
}

impl Clock {
    /// One that is right, kept in this file.
    pub(super) fn new(file: &Path) -> Self {
        let listed = Command::new("dpkg").args(["-L", "libfaketime"]).output();
        let listed =
            listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let library = listed.lines().find(|line| line.ends_with("libfaketimeMT.so.1"));
        let library =
            library.expect("this test needs libfaketime: install faketime (`cargo xtask setup` does)");
        let clock = Self { file: file.to_owned(), library: library.to_owned() };
        clock.set(0);
        clock
    }

    /// Has a program read this clock: words to put before its own. Not by the environment of whoever starts
    /// it as another user, or the library would be set up as the wrong one.
    pub(super) fn words(&self) -> [String; 4] {
        [
            format!("LD_PRELOAD={}", self.library),
            format!("FAKETIME_TIMESTAMP_FILE={}", self.file.display()),
            String::from("FAKETIME_NO_CACHE=1"),
            String::from("DONT_FAKE_MONOTONIC=1"),
        ]
    }

    /// So many seconds more than ours, or less.
    pub(super) fn set(&self, seconds: i64) {
        // It is read all the time, so never half-written.
        let next = self.file.with_extension("next");
        let written =
            std::fs::write(&next, format!("{seconds:+}")).and_then(|()| std::fs::rename(&next, &self.file));
        written.expect("the clock can be set");
    }
}
