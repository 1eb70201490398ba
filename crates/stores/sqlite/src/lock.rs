//! Who holds a lock of the database.
//!
//! SQLite's locks are POSIX record locks: while a process holds one, the kernel names it. They outlive no process, but
//! a process that is stopped (SIGSTOP, Ctrl-Z) inside a transaction keeps the write lock for as long as it is stopped,
//! and until then no session of the file can be renewed.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{major, minor};
use rustix::process::{Flock, FlockType, Pid, fcntl_getlk};
use tenure_core::Instant;
use tenure_store::clock;

/// The byte of the `-shm` file that writers lock (`WAL_WRITE_LOCK` in wal.c).
const WRITE: u64 = 120;
/// All bytes of the `-shm` file that are locked: for writing, checkpoints, recovery, read marks and opening.
const SHARED_MEMORY: std::ops::RangeInclusive<u64> = WRITE..=128;
/// The bytes of the database file that are locked (`PENDING_BYTE` in os.h): by who opens or closes it.
const PENDING: u64 = 0x4000_0000;
const PENDING_LENGTH: u64 = 512;

/// How soon a contention that lasts is reported again.
const REPORT_AGAIN: Duration = Duration::from_secs(60);

fn shared_memory(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push("-shm");
    PathBuf::from(path)
}

/// Whether a process that is stopped holds a lock of the database that others wait for.
///
/// Only for a process that does not have the database open itself: POSIX locks of a process end when it closes any
/// descriptor of the file, and this opens and closes both of them.
///
/// # Errors
/// If a file of the database is there and cannot be read.
pub fn is_held_by_stopped(database: &Path, process: Pid) -> io::Result<bool> {
    Ok(is_stopped(process) && is_held_by(database, process)?)
}

fn is_held_by(database: &Path, process: Pid) -> io::Result<bool> {
    // SQLite keeps its files beside the target of a symbolic link.
    let database = &match database.canonicalize() {
        Ok(database) => database,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let locked = |file: &File, start, length| -> io::Result<bool> {
        // Only exclusive locks are in the way of a shared one.
        let wanted = Flock { start, length, ..Flock::from(FlockType::ReadLock) };
        Ok(fcntl_getlk(file, &wanted)?.is_some_and(|found| found.pid == Some(process)))
    };
    if let Some(file) = open(&shared_memory(database))? {
        for byte in SHARED_MEMORY {
            if locked(&file, byte, 1)? {
                return Ok(true);
            }
        }
    }
    match open(database)? {
        Some(file) => locked(&file, PENDING, PENDING_LENGTH),
        None => Ok(false),
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a process is stopped, by a signal or a debugger.
fn is_stopped(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    // The name stands in parentheses and may contain anything.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// The process that holds the write lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    process: Pid,
    name: String,
    stopped: bool,
}

impl Holder {
    /// Finds it in the kernel's list of locks. `None` if the lock is free by now, or held by a process of another PID
    /// namespace. The file is not opened for this: closing it would end the locks of this process.
    pub(crate) fn find(database: &Path) -> Option<Self> {
        let path = shared_memory(database);
        let file = fs::metadata(&path).ok()?;
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let found: Vec<Lock> =
            locks.lines().filter_map(Lock::parse).filter(|lock| lock.inode == file.ino()).collect();
        let device = (major(file.dev()), minor(file.dev()));
        let lock = found.iter().find(|lock| lock.device == device);
        // Some file systems (overlayfs, btrfs) show another device in the list of locks.
        let process = lock.or_else(|| found.iter().find(|lock| has_open(lock.process, &path)))?.process;
        let name = fs::read_to_string(format!("/proc/{}/comm", process.as_raw_nonzero())).ok()?;
        Some(Self { process, name: name.trim_end().to_owned(), stopped: is_stopped(process) })
    }
}

fn has_open(process: Pid, path: &Path) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero()));
    descriptors.is_ok_and(|mut all| {
        all.any(|entry| {
            entry.and_then(|entry| fs::read_link(entry.path())).is_ok_and(|target| target == path)
        })
    })
}

/// What is the matter, and what to do about it.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, name, stopped } = self;
        let pid = process.as_raw_nonzero();
        if *process == rustix::process::getpid() {
            return f.write_str(
                "this process itself holds its write lock, in a fenced transaction or on a connection of the \
                 application; keep transactions that write far below a third of the ttl",
            );
        }
        write!(f, "process {pid} ({name}) holds its write lock")?;
        match stopped {
            true => write!(
                f,
                " and is stopped; continue it (`kill -CONT {pid}`) or end it (`kill -KILL {pid}`): until then nobody \
                 can renew a session or be elected"
            ),
            false => write!(f, "; it runs, so its disk may be slow; end it (`kill {pid}`) only if it hangs"),
        }
    }
}

/// A write lock of a process: `3: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`.
struct Lock {
    process: Pid,
    device: (u32, u32),
    inode: u64,
}

impl Lock {
    /// `None` for any lock but that of a writer.
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", process, file, start, end] = fields[..] else { return None };
        if start.parse() != Ok(WRITE) || end.parse() != Ok(WRITE) {
            return None;
        }
        let mut file = file.split(':');
        let major = u32::from_str_radix(file.next()?, 16).ok()?;
        let minor = u32::from_str_radix(file.next()?, 16).ok()?;
        let process = Pid::from_raw(process.parse().ok()?)?;
        Some(Self { process, device: (major, minor), inode: file.next()?.parse().ok()? })
    }
}

/// Reports to the log who keeps the write lock: once for each holder, and again every minute. The connections of one
/// store share it.
#[derive(Clone, Default)]
pub(crate) struct Contention(Arc<Mutex<Option<Report>>>);

/// The last one.
struct Report {
    holder: Option<Holder>,
    at: Instant,
}

impl Contention {
    /// A request has waited for the lock in vain.
    pub(crate) fn report(&self, database: &Path, holder: Option<&Holder>) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        let reported = last
            .as_ref()
            .is_some_and(|last| last.holder.as_ref() == holder && now.since(last.at) < REPORT_AGAIN);
        if reported {
            return;
        }
        let database = database.display();
        match holder {
            Some(holder) => tracing::warn!("the database `{database}` is locked: {holder}"),
            None => tracing::warn!(
                "the database `{database}` is locked, by a process that cannot be seen from here (in another container?) \
                 or by one after the other; `fuser {database}` on the host names those who use it"
            ),
        }
        *last = Some(Report { holder: holder.cloned(), at: now });
    }

    /// A request has got the lock.
    pub(crate) fn is_over(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lock_of_a_writer_is_found_in_the_list() {
        let lock = Lock::parse("3: POSIX  ADVISORY  WRITE 4711 fe:1b:10010776 120 120").unwrap();
        assert_eq!(
            (lock.process.as_raw_nonzero().get(), lock.device, lock.inode),
            (4711, (0xfe, 0x1b), 10_010_776)
        );
        for other in [
            "3: POSIX  ADVISORY  READ 4711 fe:00:7 120 120",
            "3: POSIX  ADVISORY  WRITE 4711 fe:00:7 121 121",
            "3: POSIX  ADVISORY  WRITE 4711 fe:00:7 0 EOF",
            "3: -> POSIX  ADVISORY  WRITE 4711 fe:00:7 120 120",
            "3: FLOCK  ADVISORY  WRITE 4711 fe:00:7 120 120",
            "3: OFDLCK ADVISORY  WRITE -1 fe:00:7 120 120",
            "",
        ] {
            assert!(Lock::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn who_is_stopped_is_named_with_what_to_do() {
        let process = Pid::from_raw(4_000_123).unwrap();
        let stopped = Holder { process, name: String::from("tenure"), stopped: true };
        let text = stopped.to_string();
        assert!(text.starts_with("process 4000123 (tenure) holds its write lock and is stopped"), "{text}");
        assert!(text.contains("`kill -CONT 4000123`") && text.contains("`kill -KILL 4000123`"), "{text}");
        assert!(!Holder { stopped: false, ..stopped }.to_string().contains("stopped"));
    }
}
