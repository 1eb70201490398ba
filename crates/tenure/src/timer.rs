//! A timer on the boot clock inside a runtime. Tokio's own timers stand still while the machine is
//! suspended.

use std::io;
use std::os::fd::OwnedFd;

use tenure_core::Instant;
use tenure_store::clock::{self, Timer};
use tokio::io::unix::AsyncFd;

/// A [`Timer`] that is awaited.
pub(crate) struct AsyncTimer {
    fd: AsyncFd<OwnedFd>,
    set_to: Option<Instant>,
}

impl AsyncTimer {
    /// Must be called within a runtime that drives I/O.
    pub(crate) fn new(timer: Timer) -> io::Result<Self> {
        Ok(Self { fd: tenure_sys::readable(timer.into())?, set_to: None })
    }

    /// As [`Timer::set`], but free of charge when nothing changes.
    pub(crate) fn set(&mut self, at: Option<Instant>) -> io::Result<()> {
        if self.set_to != at {
            self.set_to = at;
            clock::set_timer(self.fd.get_ref(), at)?;
        }
        Ok(())
    }

    /// Resolves when it has fired. Nothing is lost if the future is dropped before.
    pub(crate) async fn fired(&mut self) -> io::Result<()> {
        let mut guard = self.fd.readable().await?;
        // A read error here only means that another wake-up got in between.
        let mut fired = [0; 8];
        let _ = rustix::io::read(self.fd.get_ref(), &mut fired);
        guard.clear_ready();
        drop(guard);
        self.set_to = None;
        Ok(())
    }
}
