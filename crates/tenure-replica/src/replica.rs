//! All that a store keeps, and the one way to change it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tenure_core::{Age, Instant, Namespace};
use tenure_store::{Changes, Options};

use crate::space::Space;
use crate::transaction::Transaction;

/// When a transaction happens.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// On the clock that sessions are counted on. It never goes back.
    pub now: Instant,
    /// On the wall clock: for people to read, and nothing rests on it.
    pub wall: SystemTime,
    /// How readers of `now` are told of ages.
    pub ages: Ages,
}

/// Whose clock a replica's `now` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ages {
    /// The very clock that all readers count on themselves.
    Exact,
    /// One of the store's own.
    Told,
}

impl Moment {
    /// How old something is that happened `then`.
    pub(crate) fn age(&self, then: Instant) -> Age {
        let age = self.now.since(then);
        match self.ages {
            Ages::Exact => Age::Exact(age),
            Ages::Told => Age::Told { age, clock: Duration::from_nanos(self.now.as_nanos()) },
        }
    }

    /// How long ago that was, as people are told: a clock of the store's own may count slowly.
    pub(crate) fn silence(&self, then: Instant, wall: SystemTime) -> Duration {
        match self.ages {
            Ages::Exact => self.now.since(then),
            Ages::Told => self.wall.duration_since(wall).unwrap_or_default(),
        }
    }
}

/// The sessions, elections and histories of all namespaces.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Replica {
    /// The id of the newest event of any namespace.
    last_event: u64,
    spaces: BTreeMap<Namespace, Space>,
}

impl Replica {
    /// Applies a verb as a whole, at one moment. What it has changed is told to readers once it is visible to them.
    pub fn transact<T>(
        &mut self,
        options: &Options,
        moment: Moment,
        verb: impl FnOnce(&mut Transaction<'_>) -> T,
    ) -> (T, Changes) {
        let mut transaction = Transaction {
            space: self.spaces.entry(options.namespace.clone()).or_default(),
            settled: self.last_event,
            last_event: &mut self.last_event,
            retention: options.retention,
            moment,
            changes: Changes::default(),
        };
        let outcome = verb(&mut transaction);
        let changes = std::mem::take(&mut transaction.changes);
        // Whoever only looked leaves no trace: replicas that were read differently stay the same.
        if transaction.space.is_empty() {
            self.spaces.remove(&options.namespace);
        }
        (outcome, changes)
    }
}
