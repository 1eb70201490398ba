//! The wall clock beside the boot clock. A paused machine may stop its boot clock; its wall clock is corrected
//! afterwards, so the distance between the two grows by the length of the pause.

use std::time::Duration;

use crate::time::Instant;

/// By how much the wall clock has moved against the boot clock since the last confirmed renewal was sent: the lease
/// counts from then, so several short pauses within one lease count together.
#[derive(Debug, Default)]
pub(crate) struct WallClock {
    /// Wall clock minus boot clock, in nanoseconds, when last read.
    offset: Option<i128>,
    /// What it was since the confirmed renewal was sent.
    confirmed: Range,
    /// What it was since the last request was sent.
    sent: Range,
}

/// The lowest and the highest of some readings.
#[derive(Clone, Copy, Debug, Default)]
struct Range(Option<(i128, i128)>);

impl Range {
    fn add(&mut self, offset: i128) {
        let (low, high) = self.0.unwrap_or((offset, offset));
        self.0 = Some((low.min(offset), high.max(offset)));
    }

    fn width(self) -> Duration {
        let width = self.0.map_or(0, |(low, high)| high - low);
        Duration::from_nanos(u64::try_from(width).unwrap_or(u64::MAX))
    }
}

impl WallClock {
    /// Takes note of both clocks. Says how far they have moved against each other within the present lease.
    pub fn read(&mut self, wall: Duration, now: Instant) -> Duration {
        let wall = i128::try_from(wall.as_nanos()).unwrap_or(i128::MAX);
        let offset = wall - i128::from(now.as_nanos());
        self.offset = Some(offset);
        self.confirmed.add(offset);
        self.sent.add(offset);
        self.moved()
    }

    /// How far the clocks have moved against each other within the present lease.
    pub fn moved(&self) -> Duration {
        self.confirmed.width()
    }

    /// By how much the clocks moved against each other since the reading before; for a planted bug.
    pub fn leap(&self, wall: Duration, now: Instant) -> Duration {
        let mut both = Range(self.offset.map(|offset| (offset, offset)));
        let mut next = Self::default();
        next.read(wall, now);
        both.add(next.offset.unwrap_or_default());
        both.width()
    }

    /// A renewal is sent: if it is confirmed, the lease counts from now.
    pub fn renewal_sent(&mut self) {
        self.sent = Range(self.offset.map(|offset| (offset, offset)));
    }

    /// The renewal that was sent last is confirmed.
    pub fn renewal_confirmed(&mut self) {
        self.confirmed = self.sent;
    }

    /// What was before does not count any more: another session is asked for.
    pub fn begin(&mut self) {
        self.renewal_sent();
        self.renewal_confirmed();
    }
}
