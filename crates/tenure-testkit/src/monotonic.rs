//! The clock that Java counts by, and its servers in what they tell: it stands still while a machine is
//! suspended, and the boot clock does not.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tenure_core::Instant;
use tenure_store::clock;

/// How far it is behind the boot clock.
#[must_use]
pub fn behind() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0));
    let nanos = Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0));
    let boot = Duration::from_nanos(clock::now().as_nanos());
    boot.saturating_sub(seconds + nanos)
}

/// An instant of it, on the boot clock.
#[must_use]
pub fn instant(since_start: Duration) -> Instant {
    Instant::from_nanos(0) + since_start + behind()
}
