//! How fast partitions move, and how patient everybody is.

use std::time::Duration;

use super::ledger::BATCH;
use crate::request::timeout;

/// How a coordinator paces the moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// At most so many partitions are being revoked at a time. What has no owner is assigned at once.
    pub moves: u32,
    /// At most so many changes are written, and so many sessions retired, at a time.
    pub batch: usize,
    /// How long a node that is gone is expected back: until then what it owned waits for it.
    pub grace: Duration,
    /// A node whose session ends again within that time since it began is unsteady.
    pub steady: Duration,
    /// The first so many times that is forgiven. From then on the node must be there for `steady`, each
    /// time twice as long up to eight times, before it gets anything more.
    pub forgiven: u32,
    /// How long an owner may take to drain before the coordinator says that it is overdue.
    pub drain: Duration,
    /// How often the sessions are looked at.
    pub survey_every: Duration,
    /// How long an answer is waited for.
    pub patience: Duration,
}

impl Pace {
    /// What is usual for sessions that live this long.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self {
            moves: 64,
            batch: BATCH,
            grace: ttl,
            steady: ttl * 6,
            forgiven: 2,
            drain: ttl * 3,
            survey_every: ttl / 6,
            patience: timeout(ttl),
        }
    }
}

/// How a worker drains what is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// How long its work may take to finish by itself.
    pub finish: Duration,
    /// How long after that it may take to stop when it is aborted. If it has not stopped then, the session is
    /// given up: it lapses, and with it everything that the node owns.
    pub abort: Duration,
    /// How long an answer is waited for.
    pub patience: Duration,
}

impl Drain {
    /// What is usual for sessions that live this long.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self { finish: ttl * 3, abort: ttl, patience: timeout(ttl) }
    }
}
