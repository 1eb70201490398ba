//! The boot clock: the only clock that Tenure counts on.
//!
//! `CLOCK_BOOTTIME` never steps and goes on while the machine is suspended, which
//! `std::time::Instant` does not.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
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
