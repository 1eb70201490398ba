//! Child processes: taking over a descriptor that was passed by number, and what a child does between
//! fork and exec.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::clone_args;
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitOptions, getppid, set_parent_process_death_signal};

/// As in `linux/sched.h`; `libc` has it in a type that is too narrow.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Takes over a descriptor that our parent has left open for us, and keeps it from our own children.
///
/// # Errors
/// If no such descriptor is open.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: only looked at, not owned: an invalid number is an error of the call.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    fcntl_getfd(borrowed)?;
    // SAFETY: it is open, and nothing in this process owns it: it was passed to us by number, and this
    // is called once, before anything else is opened.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&owned, FdFlags::CLOEXEC)?;
    Ok(owned)
}

/// Has the child die with this process.
///
/// The death signal follows the *thread* that forks: call it from one that lives as long as the
/// process.
pub fn bind_to_us(command: &mut Command) {
    let us = rustix::process::getpid();
    let bind = move || bound(us);
    // SAFETY: between fork and exec it only makes system calls (prctl, getppid), both of them
    // async-signal-safe, and allocates nothing: errors are plain codes.
    unsafe { command.pre_exec(bind) };
}

fn bound(us: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Died before we asked to be told?
    if getppid() != Some(us) {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
    }
    Ok(())
}

/// Starts a program inside of a control group of version 2, which `group` is the open directory of. To enter one
/// later takes the kernel 10 ms and more, in which the program would not run yet.
///
/// # Errors
/// [`Refusal::Group`] if the system starts nothing there, or if this process has several threads: the copy of it would
/// lack all but one, and what they have locked. [`Refusal::Program`] if the program cannot be executed.
pub fn spawn_inside(command: &mut Command, group: impl AsFd) -> Result<Pid, Refusal> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(Refusal::Group)?.count();
    if threads != 1 {
        return Err(Refusal::Group(io::Error::other("only a process with one thread is copied")));
    }
    let (mut failed, mut fails) = io::pipe().map_err(Refusal::Group)?;
    let arguments = clone_args {
        flags: CLONE_INTO_CGROUP,
        exit_signal: u64::try_from(libc::SIGCHLD).unwrap_or_default(),
        cgroup: u64::try_from(group.as_fd().as_raw_fd()).unwrap_or_default(),
        // SAFETY: plain numbers, of which 0 means "none" or "not so".
        ..unsafe { std::mem::zeroed() }
    };
    // SAFETY: without `CLONE_VM` it is a fork: the child has a copy of the memory, of a process with one thread. The
    // arguments live until the call has returned.
    let child = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<clone_args>()) };
    match child {
        -1 => Err(Refusal::Group(io::Error::last_os_error())),
        0 => {
            let error = command.exec().raw_os_error().unwrap_or(libc::EIO);
            // If nobody reads it any more, nobody waits for us either.
            let _ = fails.write_all(&error.to_ne_bytes());
            // SAFETY: it ends this process, and nothing of it runs any more.
            unsafe { libc::_exit(libc::EXIT_FAILURE) }
        }
        child => {
            drop(fails);
            let child = i32::try_from(child).ok().and_then(Pid::from_raw);
            let child = child.ok_or_else(|| Refusal::Group(io::ErrorKind::InvalidData.into()))?;
            let mut error = [0; 4];
            // The program closes its end when it is executed.
            match failed.read_exact(&mut error) {
                Err(_) => Ok(child),
                Ok(()) => {
                    let _ = rustix::process::waitpid(Some(child), WaitOptions::empty());
                    Err(Refusal::Program(io::Error::from_raw_os_error(i32::from_ne_bytes(error))))
                }
            }
        }
    }
}

/// Why no program was started inside of a control group.
#[derive(Debug)]
pub enum Refusal {
    /// The system starts nothing there: another place may do.
    Group(io::Error),
    /// The program cannot be executed anywhere.
    Program(io::Error),
}
