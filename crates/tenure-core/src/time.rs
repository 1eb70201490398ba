//! Time as the core sees it: a number that someone else read off a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A reading of a node's own boot clock, in nanoseconds.
///
/// The core never reads a clock. It is handed an `Instant` with every input, and answers with
/// instants at which it wants to be woken. Readings of different nodes are not comparable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Instant(u64);

impl Instant {
    /// The origin of the clock: before everything that happens.
    pub const ZERO: Self = Self(0);

    /// The instant `nanos` nanoseconds after the clock's origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(nanos(rhs)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(rhs)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// By how much clock *rates* may differ from real time (assumption A1), in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Drift(u16);

impl Drift {
    /// Ten per cent: more than chrony's fastest slew of 8.3 %.
    pub const DEFAULT: Self = Self(100);

    /// `thousandths` of the rate, at most 500 (half).
    #[must_use]
    pub const fn from_thousandths(thousandths: u16) -> Option<Self> {
        if thousandths <= 500 { Some(Self(thousandths)) } else { None }
    }

    /// This drift in thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u16 {
        self.0
    }

    /// The longest stretch of *this* clock that is certain to end before `duration` has passed
    /// on any other clock that keeps assumption A1: `duration · (1 − ρ) / (1 + ρ)`.
    ///
    /// This is what "counted slowly" means throughout Tenure.
    #[must_use]
    pub fn slow(self, duration: Duration) -> Duration {
        let rho = u128::from(self.0);
        let slowed = duration.as_nanos() * (1000 - rho) / (1000 + rho);
        Duration::from_nanos(u64::try_from(slowed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_counting_matches_the_formula_of_the_design() {
        let rho = Drift::DEFAULT;
        assert_eq!(rho.slow(Duration::from_secs(11)), Duration::from_secs(9));
        assert_eq!(Drift(0).slow(Duration::from_secs(11)), Duration::from_secs(11));
    }

    #[test]
    fn instants_saturate_instead_of_wrapping() {
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant(u64::MAX) + Duration::MAX, Instant(u64::MAX));
        assert_eq!(Instant(3).since(Instant(5)), Duration::ZERO);
    }
}
