//! A timer's descriptor inside a runtime.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Has the current runtime tell when `fd` becomes readable.
///
/// # Errors
/// If the runtime cannot watch it.
pub fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and stays the same descriptor until it is dropped, and the
    // `AsyncFd` owns it.
    let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    Ok(registered?)
}
