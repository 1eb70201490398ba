//! A timer on the boot clock, which goes on while the machine is suspended. Tokio's own timers
//! do not.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tenure_core::Instant;
use tokio::io::unix::AsyncFd;

use crate::sys;

/// A timer that fires once, at an instant.
pub(crate) struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// A timer whose reader blocks.
    pub(crate) fn blocking() -> io::Result<Self> {
        Ok(Self { fd: timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)? })
    }

    /// A timer for [`AsyncTimer`].
    pub(crate) fn nonblocking() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Boottime, flags)? })
    }

    /// Fires at `at`, at once if that has passed, never if `None`.
    pub(crate) fn set(&self, at: Option<Instant>) -> io::Result<()> {
        set(&self.fd, at)
    }

    /// Blocks until it fires.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let mut fired = [0; 8];
        loop {
            match rustix::io::read(self.fd.as_fd(), &mut fired) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn set(fd: &OwnedFd, at: Option<Instant>) -> io::Result<()> {
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    // All zero would disarm it, and the clock's origin means "at once".
    let it_value = at.map_or(zero, |at| timespec(at.as_nanos().max(1)));
    let value = Itimerspec { it_interval: zero, it_value };
    timerfd_settime(fd, TimerfdTimerFlags::ABSTIME, &value)?;
    Ok(())
}

fn timespec(nanos: u64) -> Timespec {
    const BILLION: u64 = 1_000_000_000;
    let seconds = i64::try_from(nanos / BILLION).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: (nanos % BILLION) as _ }
}

/// The same timer inside a runtime.
pub(crate) struct AsyncTimer {
    fd: AsyncFd<OwnedFd>,
    set_to: Option<Instant>,
}

impl AsyncTimer {
    /// Must be called within a runtime that drives I/O.
    pub(crate) fn new(timer: Timer) -> io::Result<Self> {
        Ok(Self { fd: sys::readable(timer.fd)?, set_to: None })
    }

    /// As [`Timer::set`], but free of charge when nothing changes.
    pub(crate) fn set(&mut self, at: Option<Instant>) -> io::Result<()> {
        if self.set_to != at {
            self.set_to = at;
            set(self.fd.get_ref(), at)?;
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
