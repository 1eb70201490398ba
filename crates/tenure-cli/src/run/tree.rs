//! The process tree of a program: everything that descends from its guardian, or from its keeper.
//!
//! Both are *child subreapers*: whatever loses its parent below one (a daemon that forked twice, a
//! process that called setsid) becomes its own child. So nobody leaves the tree, and the tree is gone
//! exactly when the subreaper has no child left.

use std::collections::HashMap;
use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process, told apart from a later one with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    parent: i32,
    /// In clock ticks since boot.
    started: u64,
    dead: bool,
}

impl Process {
    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Self::parse(pid, &stat)
    }

    /// The name stands in parentheses and may hold anything, so what follows is counted from the last.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            pid,
            dead: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Signals this process, and no other that got its number meanwhile.
    fn signal(&self, signal: Signal) -> Result<(), Errno> {
        let held = pidfd_open(self.pid, PidfdFlags::empty())?;
        match Self::read(self.pid) {
            Some(now) if now.started == self.started => pidfd_send_signal(&held, signal),
            _ => Ok(()),
        }
    }
}

/// Everybody who lives at a moment, by who started whom.
pub struct Snapshot {
    children: HashMap<i32, Vec<Process>>,
}

impl Snapshot {
    pub fn take() -> io::Result<Self> {
        let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw) else {
                continue;
            };
            if let Some(process) = Process::read(pid) {
                children.entry(process.parent).or_default().push(process);
            }
        }
        Ok(Self { children })
    }

    /// Signals everything that descends from `root`, but for `root` itself and for `spare`. Says whom the
    /// system does not let us signal.
    pub fn signal(&self, root: Pid, spare: Option<Pid>, signal: Signal) -> Vec<i32> {
        let mut immune = Vec::new();
        for process in self.below(root) {
            if process.dead || Some(process.pid) == spare {
                continue;
            }
            if process.signal(signal) == Err(Errno::PERM) {
                immune.push(process.pid.as_raw_nonzero().get());
            }
        }
        immune
    }

    /// Whether nothing that lives descends from `root`, but for `spare`.
    pub fn is_empty(&self, root: Pid, spare: Option<Pid>) -> bool {
        self.below(root).iter().all(|process| process.dead || Some(process.pid) == spare)
    }

    fn below(&self, root: Pid) -> Vec<Process> {
        let mut found = Vec::new();
        let mut parents = vec![root.as_raw_nonzero().get()];
        while let Some(parent) = parents.pop() {
            for child in self.children.get(&parent).into_iter().flatten() {
                parents.push(child.pid.as_raw_nonzero().get());
                found.push(*child);
            }
        }
        found
    }
}

/// Signals a process if it is a child of `parent`, and no other that got its number meanwhile.
pub fn signal_child(parent: Pid, child: Pid, signal: Signal) -> Result<(), Errno> {
    match Process::read(child) {
        Some(process) if process.parent == parent.as_raw_nonzero().get() => process.signal(signal),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_is_no_trap() {
        let pid = Pid::from_raw(42).unwrap();
        let stat = "42 (a ) R 1 (b) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 2 3";
        let process = Process::parse(pid, stat).unwrap();
        assert_eq!((process.parent, process.started, process.dead), (7, 98765, false));
    }

    #[test]
    fn this_process_descends_from_its_parent() {
        let parent = rustix::process::getppid().unwrap();
        let me = rustix::process::getpid();
        assert!(Snapshot::take().unwrap().below(parent).iter().any(|process| process.pid == me));
    }
}
