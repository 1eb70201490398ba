//! The log of leaderships: lines of one width, each rewritten in place while its leadership lasts.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::json;

/// A divisor of the page size: a line lies within one page, so that the kernel copies it in one go
/// and `kill -9` leaves the old line or the new one, never half of each.
const WIDTH: usize = 256;

pub struct Log {
    file: File,
}

/// One leadership, as the checker reads it.
pub struct Line<'a> {
    pub election: &'a str,
    pub node: &'a str,
    pub term: u64,
    pub from: u64,
    pub until: u64,
}

impl Log {
    /// Starts a log of its own for this process.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::options().write(true).create_new(true).open(path)? })
    }

    /// Writes line number `slot`, counted from 0.
    pub fn write(&self, slot: u64, line: &Line<'_>) -> io::Result<()> {
        let Line { election, node, term, from, until } = line;
        let pid = std::process::id();
        let line = json!({
            "election": election, "node": node, "pid": pid, "term": term, "from": from, "until": until,
        });
        // Blanks at the end of a line are nothing to a reader of JSON.
        let line = format!("{:<width$}\n", line.to_string(), width = WIDTH - 1);
        if line.len() != WIDTH {
            return Err(io::Error::other("the names are too long for a line of the log"));
        }
        self.file.write_all_at(line.as_bytes(), slot * WIDTH as u64)
    }
}
