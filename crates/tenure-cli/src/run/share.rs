//! A partition that this node owns, and how far its program has come.

use std::time::Duration;

use tenure::{Instant, Partition};
use tenure_store::clock;

use super::orders::{End, Ward};
use super::restart::Backoff;
use crate::cli::Restart;

pub struct Share {
    /// Dropping it says that nothing works on the partition any more.
    pub partition: Partition,
    pub stage: Stage,
    backoff: Backoff,
}

#[derive(Clone, Copy)]
pub enum Stage {
    /// Its program runs.
    Running { ward: Ward, since: Instant },
    /// It was told to stop. The guardian itself is in doubt from `doubt` on.
    Stopping { ward: Ward, doubt: Option<Instant> },
    /// It has ended, and is started again.
    Pausing { until: Instant },
    /// It has ended, and that was that.
    Idle,
}

impl Share {
    pub const fn new(partition: Partition, restart: Restart) -> Self {
        Self { partition, stage: Stage::Idle, backoff: Backoff::new(restart) }
    }

    /// The run that is there, or was told to stop.
    pub const fn ward(&self) -> Option<Ward> {
        match self.stage {
            Stage::Running { ward, .. } | Stage::Stopping { ward, .. } => Some(ward),
            Stage::Pausing { .. } | Stage::Idle => None,
        }
    }

    /// When something is due.
    pub const fn wake(&self) -> Option<Instant> {
        match self.stage {
            Stage::Stopping { doubt, .. } => doubt,
            Stage::Pausing { until } => Some(until),
            Stage::Running { .. } | Stage::Idle => None,
        }
    }

    /// Its program has ended, although it might have gone on. Says how long it pauses, if it is started again.
    pub fn ended(&mut self, end: End) -> Option<Duration> {
        let now = clock::now();
        let ran = match self.stage {
            Stage::Running { since, .. } => now.since(since),
            _ => Duration::ZERO,
        };
        let pause = self.backoff.after(end, ran);
        self.stage = pause.map_or(Stage::Idle, |pause| Stage::Pausing { until: now + pause });
        pause
    }
}
