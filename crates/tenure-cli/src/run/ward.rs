//! A program under guard, as its guardian sees it.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getpid};
use tenure::Instant;

use super::cgroup::{self, Cgroup};
use super::keeper::Errand;
use super::orders::{End, Hello, Start};
use super::tree::{self, Snapshot};

/// What a program must not see, beside everything of Tenure's: it is meant for the supervisor.
const NOT_FOR_THE_PROGRAM: [&str; 6] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// Removes Tenure's settings, which may hold a secret, and what is the supervisor's own from the environment of a child.
pub fn hide_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let hidden = name
            .to_str()
            .is_some_and(|name| name.starts_with("TENURE_") || NOT_FOR_THE_PROGRAM.contains(&name));
        if hidden {
            command.env_remove(name);
        }
    }
}

pub struct Ward {
    /// Our child: the program itself, or its keeper.
    pub child: Pid,
    /// How the keeper ended, if there is one and it has.
    pub left: Option<End>,
    kept: bool,
    /// The program itself, once it is known.
    pub program: Option<Pid>,
    group: Option<Cgroup>,
    /// How the program ended; its tree may still be there.
    pub end: Option<End>,
    /// It was told to stop, and is killed at this instant.
    pub kill_at: Option<Instant>,
    /// It outlived what it ran under, and was ended for that.
    pub lapsed: bool,
    pub told_of_immune: bool,
}

impl Ward {
    /// Starts a program, or the keeper that starts it and speaks to us by `line`.
    pub fn start(hello: &Hello, start: Start, line: impl AsFd) -> io::Result<Self> {
        let group = if hello.cgroup { Cgroup::create(start.ward) } else { None };
        let mut words = start.program.into_iter().map(OsString::from_vec);
        // A copy that survives exec, and lives only until then.
        let passed = rustix::io::dup(line)?;
        // A keeper starts the program inside of the group, and stays outside.
        let (mut command, inside) = if hello.several {
            let errand = Errand {
                line: passed.as_fd(),
                ward: start.ward,
                group: hello.group,
                until: start.held.until(),
                cgroup: group.as_ref().map(Cgroup::path),
            };
            (errand.command(words), None)
        } else {
            drop(passed);
            let mut command = Command::new(words.next().unwrap_or_default());
            command.args(words).process_group(hello.group);
            (command, group.as_ref().map(Cgroup::path))
        };
        hide_settings(&mut command);
        command.envs(start.environment);
        tenure_sys::bind_to_us(&mut command);
        let child = cgroup::spawn(&mut command, inside)?;
        Ok(Self {
            child,
            left: None,
            kept: hello.several,
            program: (!hello.several).then_some(child),
            group,
            end: None,
            kill_at: None,
            lapsed: false,
            told_of_immune: false,
        })
    }

    /// Whose descendants its tree is.
    pub fn root(&self) -> Pid {
        if self.kept { self.child } else { getpid() }
    }

    /// Our child has ended.
    pub fn child_ended(&mut self, end: Option<End>) {
        if self.kept {
            self.left = end;
        } else if self.end.is_none() {
            self.end = end;
        }
    }

    /// Whether nothing is left of its tree. `alone`: whether we have no child any more.
    pub fn is_gone(&self, alone: bool) -> bool {
        self.end.is_some() && (alone || self.left.is_some())
    }

    /// Whether its keeper ended before its time: then it is not known any more whose what is left is.
    pub fn is_spilled(&self) -> bool {
        self.left.is_some_and(|left| left != End::Code(0) || self.end.is_none())
    }

    /// Passes a signal on to the program.
    pub fn signal(&self, signal: Signal) {
        if let (Some(program), None) = (self.program, self.end) {
            // It may have ended just now, which is no loss.
            let _ = tree::signal_child(self.root(), program, signal);
        }
    }

    /// Tells the tree to stop.
    pub fn tell(&self, all: &Snapshot) {
        all.signal(self.root(), None, Signal::TERM);
    }

    /// Kills the tree, as far as it can be seen. Says who cannot be killed.
    pub fn kill(&self, all: &Snapshot) -> Vec<i32> {
        if let Some(group) = &self.group {
            group.kill();
        }
        all.signal(self.root(), None, Signal::KILL)
    }
}
