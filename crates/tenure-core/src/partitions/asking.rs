//! One question at a time: asked, answered or given up, and asked again after a pause.

use std::time::Duration;

use super::ledger::Demand;
use crate::time::Instant;

/// Something to ask of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Goes back with the answer. An answer that nobody waits for any more is discarded.
    pub serial: u64,
    /// When nobody waits for the answer any more.
    pub give_up: Instant,
    /// What to ask.
    pub demand: Demand,
}

#[derive(Debug, Default)]
pub(super) struct Asking {
    flight: Option<(u64, Instant, Instant)>,
    failures: u32,
    not_before: Instant,
}

impl Asking {
    pub fn ask(&mut self, serial: u64, demand: Demand, patience: Duration, now: Instant) -> Ask {
        let give_up = now + patience;
        self.flight = Some((serial, now, give_up));
        Ask { serial, give_up, demand }
    }

    /// Whether something may be asked now.
    pub fn is_free(&self, now: Instant) -> bool {
        self.flight.is_none() && now >= self.not_before
    }

    /// Takes note of an answer; tells when its question was asked, if it is still waited for.
    pub fn answered(&mut self, serial: u64) -> Option<Instant> {
        let (_, sent, _) = self.flight.take_if(|(asked, ..)| *asked == serial)?;
        self.failures = 0;
        Some(sent)
    }

    /// Takes note that there is no answer. Each time in a row, the pause after it is longer.
    pub fn failed(&mut self, serial: u64, patience: Duration, now: Instant) -> bool {
        let ours = self.flight.take_if(|(asked, ..)| *asked == serial).is_some();
        if ours {
            self.failures = (self.failures + 1).min(4);
            self.not_before = now + patience / 16 * (1 << self.failures);
        }
        ours
    }

    /// Gives up what was not answered in time; tells whether there was something.
    pub fn expire(&mut self, patience: Duration, now: Instant) -> bool {
        let overdue = self.flight.filter(|(_, _, give_up)| *give_up <= now);
        overdue.is_some_and(|(serial, ..)| self.failed(serial, patience, now))
    }

    /// Forgets what was asked.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// When to look again: at the answer that does not come, or when what is wanted from `wanted` on may be asked.
    pub fn wake(&self, wanted: Option<Instant>) -> Option<Instant> {
        match self.flight {
            Some((_, _, give_up)) => Some(give_up),
            None => wanted.map(|at| at.max(self.not_before)),
        }
    }
}
