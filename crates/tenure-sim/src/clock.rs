//! Clocks of the simulated world. Real time is a `u64` of nanoseconds that nobody can read.

use std::time::Duration;

use tenure_core::Instant;

/// Real time in nanoseconds since the world began.
pub type Real = u64;

/// Nanoseconds of a duration.
#[must_use]
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A clock that runs at its own rate from its own origin, and may be stopped.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Thousandths of real time: 1000 is right, 900 is slow.
    rate: u64,
    base_real: Real,
    base_local: u64,
    stopped: bool,
}

impl Clock {
    /// A clock that shows `local` at real time zero.
    #[must_use]
    pub fn new(rate: u64, local: u64) -> Self {
        Self { rate, base_real: 0, base_local: local, stopped: false }
    }

    /// What it shows.
    #[must_use]
    pub fn read(&self, real: Real) -> Instant {
        let run = if self.stopped { 0 } else { (real - self.base_real) * self.rate / 1000 };
        Instant::from_nanos(self.base_local + run)
    }

    /// The real time at which it will show at least `local`, if nothing disturbs it.
    #[must_use]
    pub fn when(&self, local: Instant, real: Real) -> Real {
        let ahead = local.as_nanos().saturating_sub(self.read(real).as_nanos());
        real + ahead.saturating_mul(1000).div_ceil(self.rate)
    }

    /// Stops it, as a hypervisor does that forgets to tell its guest the time.
    pub fn stop(&mut self, real: Real) {
        self.rebase(real);
        self.stopped = true;
    }

    /// Lets it run on from where it stopped.
    pub fn go_on(&mut self, real: Real) {
        self.rebase(real);
        self.stopped = false;
    }

    /// Puts it forward or back; never below its origin.
    pub fn step(&mut self, by: i64, real: Real) {
        self.rebase(real);
        self.base_local = self.base_local.saturating_add_signed(by);
    }

    /// Its rate in thousandths.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.rate
    }

    fn rebase(&mut self, real: Real) {
        self.base_local = self.read(real).as_nanos();
        self.base_real = real;
    }
}
