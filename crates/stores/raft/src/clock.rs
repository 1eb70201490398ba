//! The replicated clock: what ages of sessions are counted on.
//!
//! It is part of the replicated state, so it goes on when another member leads the group, and it never runs
//! faster than real time. Every command carries a [`Tick`], and moves the clock by no more than what certainly
//! passed since the command before it was written:
//!
//! * Written by the same process: the difference of its two readings of its own boot clock.
//! * Written by another process: how long ago that process has *seen* the command before it applied, which
//!   was after it was written. If it had not seen exactly that one, nothing is known, and nothing is counted.
//!
//! Either way it is counted slowly, since clock rates differ. The stretches that are counted lie one after the
//! other, so over any number of commands and leaders the clock moves less than time does.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{Drift, Instant};

/// By how much the rates of the members' clocks may differ: the same on all of them, and for ever, because
/// replicas that count differently are none.
const DRIFT: Drift = Drift::DEFAULT;

/// When a command was written, as far as its writer can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tick {
    /// One life of one process.
    pub writer: u128,
    /// What its boot clock showed.
    pub reading: Instant,
    /// The last command that it has seen applied, and how long ago.
    pub heard: Option<(u64, Duration)>,
}

/// The clock itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Clock {
    now: Instant,
    last: Option<Last>,
}

/// The last command that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Last {
    index: u64,
    writer: u128,
    reading: Instant,
}

impl Clock {
    /// Applies the command at this place in the log.
    pub(crate) fn advance(&mut self, tick: &Tick, index: u64) -> Instant {
        self.now = self.at(tick);
        let reading = match self.last {
            // Commands of one writer may overtake each other on their way into the log.
            Some(last) if last.writer == tick.writer => last.reading.max(tick.reading),
            _ => tick.reading,
        };
        self.last = Some(Last { index, writer: tick.writer, reading });
        self.now
    }

    /// What the clock would show if a command of this tick came next.
    pub(crate) fn at(&self, tick: &Tick) -> Instant {
        let passed = match (self.last, tick.heard) {
            (Some(last), _) if last.writer == tick.writer => tick.reading.since(last.reading),
            (Some(last), Some((index, ago))) if last.index == index => ago,
            _ => Duration::ZERO,
        };
        self.now + DRIFT.slow(passed)
    }

    /// The place of the last command.
    pub(crate) fn index(&self) -> Option<u64> {
        self.last.map(|last| last.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn tick(writer: u128, reading: u64, heard: Option<(u64, u64)>) -> Tick {
        let heard = heard.map(|(index, ago)| (index, Duration::from_millis(ago)));
        Tick { writer, reading: at(reading), heard }
    }

    fn slow(millis: u64) -> Duration {
        DRIFT.slow(Duration::from_millis(millis))
    }

    #[test]
    fn it_counts_what_passed_between_two_commands_of_one_writer_slowly() {
        let mut clock = Clock::default();
        let start = clock.advance(&tick(1, 5000, None), 1);
        assert_eq!(clock.advance(&tick(1, 7000, None), 2).since(start), slow(2000));
    }

    #[test]
    fn another_writer_counts_from_when_it_saw_the_command_before() {
        let mut clock = Clock::default();
        let start = clock.advance(&tick(1, 5000, None), 1);
        assert_eq!(clock.advance(&tick(2, 90, Some((1, 1500))), 2).since(start), slow(1500));
    }

    #[test]
    fn another_writer_that_has_not_seen_the_command_before_counts_nothing() {
        let mut clock = Clock::default();
        clock.advance(&tick(1, 5000, None), 1);
        let before = clock.advance(&tick(1, 6000, None), 2);
        assert_eq!(clock.advance(&tick(2, 90_000, Some((1, 1500))), 3), before);
        assert_eq!(clock.advance(&tick(3, 90_000, None), 4), before);
    }

    #[test]
    fn commands_that_overtook_each_other_do_not_move_it_back_or_count_twice() {
        let mut clock = Clock::default();
        let start = clock.advance(&tick(1, 1000, None), 1);
        let later = clock.advance(&tick(1, 3000, None), 2);
        assert_eq!(clock.advance(&tick(1, 2000, None), 3), later);
        assert_eq!(clock.advance(&tick(1, 4000, None), 4).since(start), slow(2000) + slow(1000));
    }

    // ----- simulated ----------------------------------------------------------------------------

    /// SplitMix64: the same world for the same seed.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, sides: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) % sides
        }
    }

    /// A member with a clock of its own: it began at any time, and runs too fast or too slow.
    struct Member {
        writer: u128,
        offset: u64,
        per_mille: u64,
        clock: Clock,
        heard: Option<Instant>,
    }

    impl Member {
        fn reads(&self, now: u64) -> Instant {
            Instant::from_nanos(self.offset + now * self.per_mille / 1000)
        }

        fn tick(&self, now: u64) -> Tick {
            let reading = self.reads(now);
            let heard = self.heard.and_then(|at| Some((self.clock.index()?, reading.since(at))));
            Tick { writer: self.writer, reading, heard }
        }

        fn apply(&mut self, entry: &Entry, now: u64) {
            self.clock.advance(&entry.tick, entry.index);
            self.heard = Some(self.reads(now));
        }
    }

    #[derive(Clone, Copy)]
    struct Entry {
        index: u64,
        tick: Tick,
        /// In real time.
        written: u64,
    }

    /// What a group of three can do to its log: whoever leads writes, the others apply later, leaders change
    /// and take what was not confirmed with them, members restart and forget what they heard when.
    fn log_of(seed: u64) -> Vec<Entry> {
        let mut dice = Dice(seed);
        let mut members: Vec<Member> = (0..3)
            .map(|writer| Member {
                writer,
                offset: dice.below(1_000_000_000_000),
                per_mille: 900 + dice.below(201),
                clock: Clock::default(),
                heard: None,
            })
            .collect();
        let (mut log, mut confirmed, mut applied) = (Vec::<Entry>::new(), 0, [0; 3]);
        let (mut now, mut leader, mut lives) = (0, 0, 3);
        for _ in 0..400 {
            now += dice.below(2_000_000_000);
            let member = usize::try_from(dice.below(3)).unwrap();
            match dice.below(8) {
                0..=2 => {
                    let index = log.len() as u64 + 1;
                    // Two that were stamped one after the other may come into the log the other way round.
                    let written = now - dice.below(2) * dice.below(1_000_000);
                    log.push(Entry { index, tick: members[leader].tick(written), written });
                }
                3 => confirmed = log.len(),
                4 | 5 if applied[member] < confirmed => {
                    members[member].apply(&log[applied[member]], now);
                    applied[member] += 1;
                }
                6 => {
                    // Whoever leads next has all that was confirmed, and some of what was not.
                    leader = member;
                    let kept = usize::try_from(dice.below((log.len() - confirmed) as u64 + 1)).unwrap();
                    log.truncate(confirmed + kept);
                }
                7 => {
                    // Another life of the process, which applies everything again, at once.
                    members[member].writer = lives;
                    lives += 1;
                    members[member].clock = Clock::default();
                    members[member].heard = None;
                    (0..applied[member]).for_each(|at| members[member].apply(&log[at], now));
                }
                _ => {}
            }
        }
        log.truncate(confirmed);
        log
    }

    #[test]
    fn over_any_stretch_of_any_log_it_moves_no_more_than_time_does() {
        let (mut counted, mut passed) = (Duration::ZERO, Duration::ZERO);
        for seed in 0..2000 {
            let log = log_of(seed);
            let mut clock = Clock::default();
            let shown: Vec<Instant> =
                log.iter().map(|entry| clock.advance(&entry.tick, entry.index)).collect();
            for later in 0..log.len() {
                for earlier in 0..later {
                    let moved = shown[later].since(shown[earlier]);
                    let real = Duration::from_nanos(log[later].written.saturating_sub(log[earlier].written));
                    assert!(moved <= real, "seed {seed}: {moved:?} in {real:?}");
                }
            }
            if let (Some(first), Some(last)) = (log.first(), log.last()) {
                counted += clock.now.since(shown[0]);
                passed += Duration::from_nanos(last.written - first.written);
            }
        }
        // Nor does it stand still: with all these changes, it still counts a good part of the time.
        assert!(counted > passed / 3, "{counted:?} of {passed:?}");
    }
}
