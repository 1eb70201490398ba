//! What nothing can be faster than, measured in the same run: a durable write, and waking up.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tenure_store::clock;

use super::Outcome;

/// A SQLite file with the store's settings and one row, without Tenure.
pub struct Row {
    connection: Connection,
}

impl Row {
    pub fn open(path: &Path) -> Outcome<Self> {
        let mut connection = Connection::open(path)?;
        connection.busy_handler(Some(|_| {
            std::thread::sleep(Duration::from_micros(200));
            true
        }))?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.execute_batch(
            "PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS floor (id INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT;
             INSERT OR IGNORE INTO floor VALUES (1, 0);",
        )?;
        let row = Self { connection };
        row.age(path)?;
        Ok(row)
    }

    /// Lets the log grow to its usual size. From then on SQLite writes it in place; while it still
    /// grows, every commit makes the file system write its own journal too, which is several times
    /// dearer. A file that is in use has that behind it.
    fn age(&self, path: &Path) -> Outcome<()> {
        const USUAL: u64 = 1000 * 4096;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        if std::fs::metadata(&log).is_ok_and(|log| log.len() > USUAL) {
            return Ok(());
        }
        self.connection.execute_batch(
            "CREATE TABLE filler (bytes BLOB) STRICT;
             INSERT INTO filler VALUES (zeroblob(4500000));
             DROP TABLE filler;",
        )?;
        self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()))?;
        std::fs::File::open(&log)?.sync_all()?;
        Ok(())
    }

    /// The least that a durable change can be: one row of one table, one commit.
    pub fn commit(&self) -> Outcome<()> {
        self.connection.prepare_cached("UPDATE floor SET n = n + 1 WHERE id = 1")?.execute([])?;
        Ok(())
    }

    /// How long so many commits take, one after the other.
    pub fn commits(&self, count: u32) -> Outcome<Duration> {
        let before = clock::now();
        for _ in 0..count {
            self.commit()?;
        }
        Ok(clock::now().since(before))
    }
}

/// How much too late this process wakes up when it asked to be woken `after` this long.
pub fn oversleep(after: Duration) -> Outcome<Duration> {
    const BILLION: u64 = 1_000_000_000;
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
    let at = clock::now() + after;
    let it_value = Timespec {
        tv_sec: i64::try_from(at.as_nanos() / BILLION)?,
        tv_nsec: i64::try_from(at.as_nanos() % BILLION)?,
    };
    let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
    rustix::io::read(&timer, &mut [0; 8])?;
    Ok(clock::now().since(at))
}
