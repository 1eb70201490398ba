//! The boot clock: the only clock that Tenure counts on.
//!
//! `CLOCK_BOOTTIME` never steps and goes on while the machine is suspended, which
//! `std::time::Instant` does not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tenure_core::Instant;

/// Reads the boot clock.
#[must_use]
pub fn now() -> Instant {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Instant::from_nanos(seconds * 1_000_000_000 + nanos)
}

/// Reads the wall clock. For people to read, and to notice that a machine was paused; never to
/// decide who leads.
#[must_use]
pub fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Names the clock that [`now`] reads: two processes with the same name read the same clock.
/// `None` where the system does not say; then no two readings are comparable.
///
/// The boot id alone is not enough: a time namespace shifts the boot clock of a container.
#[must_use]
pub fn identity() -> Option<&'static str> {
    static IDENTITY: OnceLock<Option<String>> = OnceLock::new();
    IDENTITY
        .get_or_init(|| {
            let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
            let namespace = std::fs::read_link("/proc/self/ns/time").map_or_else(
                |_| String::from("time:[none]"), // kernels before 5.6 have no time namespaces
                |link| link.to_string_lossy().into_owned(),
            );
            Some(format!("{} {namespace}", boot.trim()))
        })
        .as_deref()
}

/// A timer on the boot clock that fires once, at an instant: also one that passed in a suspend.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// A timer whose reader blocks.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn blocking() -> io::Result<Self> {
        Ok(Self { fd: timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)? })
    }

    /// A timer for those who poll.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn nonblocking() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Boottime, flags)? })
    }

    /// Fires at `at`, at once if that has passed, never if `None`.
    ///
    /// # Errors
    /// Only if the system is broken.
    pub fn set(&self, at: Option<Instant>) -> io::Result<()> {
        set_timer(&self.fd, at)
    }

    /// Blocks until it fires; if it is one for those who poll, only makes it quiet again.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it has not fired.
    pub fn wait(&self) -> io::Result<()> {
        loop {
            match rustix::io::read(&self.fd, &mut [0; 8]) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Timer> for OwnedFd {
    fn from(timer: Timer) -> Self {
        timer.fd
    }
}

/// [`Timer::set`] for who has only the descriptor.
///
/// # Errors
/// If it is none of a timer.
pub fn set_timer(timer: impl AsFd, at: Option<Instant>) -> io::Result<()> {
    const BILLION: u64 = 1_000_000_000;
    let timespec = |nanos: u64| Timespec {
        tv_sec: i64::try_from(nanos / BILLION).unwrap_or(i64::MAX),
        tv_nsec: (nanos % BILLION) as _,
    };
    // All zero would disarm it, and the clock's origin means "at once".
    let it_value = timespec(at.map_or(0, |at| at.as_nanos().max(1)));
    let value = Itimerspec { it_interval: timespec(0), it_value };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &value)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_boot_clock_runs_forward_and_has_a_name() {
        let before = super::now();
        assert!(super::now() >= before);
        assert_eq!(super::identity(), super::identity());
        assert!(super::identity().is_some_and(|name| name.contains("time:[")));
    }
}
