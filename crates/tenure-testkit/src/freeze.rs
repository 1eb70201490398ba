//! Stops a process as a debugger or a full host would, where that can be survived.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Stops a child of ours with all its threads, but not while it has a file locked for writing.
///
/// Whoever is stopped inside a transaction on SQLite keeps the lock of the file, and nobody is elected until it
/// goes on (docs/stores/sqlite.md). That is a limit of the store; what is tested with this is everything else.
///
/// # Panics
/// If it is not a child, or has ended.
pub fn freeze(pid: u32) {
    let child = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process has a number");
    loop {
        kill_process(child, Signal::STOP).expect("it is ours and lives");
        let stopped = waitid(WaitId::Pid(child), WaitIdOptions::STOPPED).expect("it is a child of ours");
        assert!(stopped.is_some_and(|status| status.stopped()), "a child that was stopped has stopped");
        if !writes(pid) {
            return;
        }
        kill_process(child, Signal::CONT).expect("it is ours and lives");
        std::thread::yield_now();
    }
}

/// `3: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120`
fn writes(pid: u32) -> bool {
    let locks = std::fs::read_to_string("/proc/locks").expect("the kernel tells of its locks");
    locks.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(1) == Some(&"POSIX")
            && fields.contains(&"WRITE")
            && fields.contains(&pid.to_string().as_str())
    })
}
