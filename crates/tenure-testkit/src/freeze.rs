//! Stops a process as a debugger or a full host would: outside of a write to SQLite, or inside of one.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use inotify::{Inotify, WatchMask};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tenure_store::clock;

use crate::patience::HANG;

/// The byte of a `-shm` file that writers lock.
const WRITE_LOCK: &str = "120";

/// Stops a child of ours with all its threads, but not while it has a file locked for writing.
///
/// What is stopped inside a transaction on SQLite keeps the lock of the file, and nobody is elected until it goes on
/// or ends (docs/stores/sqlite.md): that is what [`freeze_inside_a_write`] is for. This is for everything else.
///
/// # Panics
/// If it is not a child, or has ended.
pub fn freeze(pid: u32) {
    let child = number(pid);
    loop {
        assert!(stop(child), "process {pid} has ended");
        if !locks().iter().any(|lock| lock.is_of(pid)) {
            return;
        }
        kill_process(child, Signal::CONT).expect("it is ours and lives");
        std::thread::yield_now();
    }
}

/// Stops a child of ours with all its threads inside a write to this database, so that it holds the write lock for as
/// long as it is stopped.
///
/// It is stopped when the write-ahead log is written to, which is before the commit. Whether it is the one that writes,
/// and still does, is known once it is stopped; if not, it goes on and is stopped at the next write. If that takes us
/// too long to find out, its guardian has ended it: nobody but who is stopped with the lock is ended for that.
///
/// # Panics
/// If it is not a child, or never writes.
pub fn freeze_inside_a_write(pid: u32, database: &Path) {
    let child = number(pid);
    let shared_memory = std::fs::metadata(beside(database, "-shm")).expect("the database is open").ino();
    let mut observer = Inotify::init().expect("the kernel tells of changes");
    observer.watches().add(beside(database, "-wal"), WatchMask::MODIFY).expect("the database has a log");
    let mut buffer = [0; 4096];
    let end = clock::now() + HANG;
    while clock::now() < end {
        let mut written = [PollFd::new(&observer, PollFlags::IN)];
        poll(&mut written, Some(&Timespec { tv_sec: 1, tv_nsec: 0 })).expect("waiting for a write");
        if written[0].revents().is_empty() {
            continue;
        }
        if !stop(child) {
            return;
        }
        let held = |lock: &Lock| lock.is_of(pid) && lock.inode == shared_memory && lock.start == WRITE_LOCK;
        if locks().iter().any(held) {
            return;
        }
        kill_process(child, Signal::CONT).expect("it is ours and was not waited for");
        // What was written meanwhile is no longer being written.
        let _ = observer.read_events(&mut buffer);
    }
    panic!("process {pid} was never met inside a write");
}

fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(database);
    path.push(suffix);
    PathBuf::from(path)
}

fn number(pid: u32) -> Pid {
    i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process has a number")
}

/// False if it has ended meanwhile: then there is nothing to wait for but its end.
fn stop(child: Pid) -> bool {
    kill_process(child, Signal::STOP).expect("it is ours and was not waited for");
    match waitid(WaitId::Pid(child), WaitIdOptions::STOPPED) {
        Ok(stopped) => stopped.is_some_and(|status| status.stopped()),
        Err(Errno::CHILD) => false,
        Err(error) => panic!("waiting for process {child:?} to stop: {error}"),
    }
}

/// A lock for writing: `3: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`.
struct Lock {
    pid: String,
    inode: u64,
    start: String,
}

impl Lock {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "POSIX", _, "WRITE", pid, file, start, _] = fields[..] else { return None };
        let inode = file.rsplit(':').next()?.parse().ok()?;
        Some(Self { pid: pid.to_owned(), inode, start: start.to_owned() })
    }

    fn is_of(&self, pid: u32) -> bool {
        self.pid == pid.to_string()
    }
}

fn locks() -> Vec<Lock> {
    let locks = std::fs::read_to_string("/proc/locks").expect("the kernel tells of its locks");
    locks.lines().filter_map(Lock::parse).collect()
}
