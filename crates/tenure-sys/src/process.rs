//! Child processes: taking over a descriptor that was passed by number, and what a child does between
//! fork and exec.

use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

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

/// Has the child enter a control group, and die with this process.
///
/// The death signal follows the *thread* that forks: call it from one that lives as long as the
/// process.
pub fn bind_to_us(command: &mut Command, door: Option<File>) {
    let us = rustix::process::getpid();
    let bind = move || bound(us, door.as_ref());
    // SAFETY: between fork and exec it only makes system calls (prctl, getppid, write), all of them
    // async-signal-safe, and allocates nothing: errors are plain codes.
    unsafe { command.pre_exec(bind) };
}

fn bound(us: Pid, door: Option<&File>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Died before we asked to be told?
    if getppid() != Some(us) {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()));
    }
    if let Some(door) = door {
        // Without it, the walk through the tree finds us too.
        let _ = rustix::io::write(door, b"0");
    }
    Ok(())
}
