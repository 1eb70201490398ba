//! Numbers that look random, from a seed that the caller chose.

use std::time::Duration;

/// A small generator (SplitMix64). The core has no randomness of its own: the seed is an argument,
/// and the same seed gives the same run.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A generator that starts here.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (0 if that is 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        u64::try_from((u128::from(self.roll()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// Between half of `duration` and the whole of it, so that nodes which failed together do not
    /// try again together.
    pub fn jitter(&mut self, duration: Duration) -> Duration {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos / 2 + self.below(nanos / 2 + 1))
    }
}
