//! Whether the supervisor holds up everybody else: stopped past its lease, with a lock of the store.
//!
//! A process that is stopped (SIGSTOP, Ctrl-Z) in the middle of a write to SQLite keeps the write lock of the file, and
//! until it goes on or ends nobody can renew a session or be elected. Once its lease is over there is nothing left that
//! it could lose: its program is gone, and its session is another's to retire.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;
use tenure::Instant;

/// How soon to look again: first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

pub struct LockWatch {
    /// `None` where the store is not a file, so that its locks are not the kernel's.
    database: Option<PathBuf>,
    supervisor: Pid,
    look_at: Instant,
    pause: Duration,
}

impl LockWatch {
    pub const fn new(database: Option<PathBuf>, supervisor: Pid) -> Self {
        Self { database, supervisor, look_at: Instant::ZERO, pause: FIRST_PAUSE }
    }

    /// When to look next: not before the lease is over.
    pub fn wake(&self, lease_ends: Instant) -> Option<Instant> {
        self.database.as_ref().map(|_| self.look_at.max(lease_ends))
    }

    /// The file that the supervisor keeps locked, if it is time to look and it is stopped.
    pub fn kept(&mut self, now: Instant, lease_ends: Instant) -> Option<PathBuf> {
        let database = self.database.as_ref()?;
        if now < lease_ends {
            (self.look_at, self.pause) = (lease_ends, FIRST_PAUSE);
            return None;
        }
        if now < self.look_at {
            return None;
        }
        self.look_at = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        // A file that cannot be read cannot be watched over; the nodes that use it say so themselves.
        let kept = tenure::sqlite::is_held_by_stopped(database, self.supervisor).unwrap_or(false);
        kept.then(|| database.clone())
    }
}
