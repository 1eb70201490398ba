//! What was read of the ledger is read again once the session was renewed, so that a store that goes back in time
//! by a moment is found out too.
//!
//! A session is renewed in the store that keeps the ledger. If that goes back, the next renewal tells; unless it
//! went back by so little that no renewal was lost. Then only what was read since the last renewal can be lost. So
//! that is read again after the next one: what is in its place then is lost no more without a renewal that
//! tells. Only a renewal that was applied and not answered can hide it; after one, everything is read again.

use std::collections::BTreeSet;

use super::assignment::Partition;
use super::ledger::Revision;
use crate::record::{Renewed, Sequence};

#[derive(Debug, Default)]
pub(super) struct Review {
    /// The last renewal that is known.
    sequence: Sequence,
    /// How far the ledger was read when the session was last renewed. What was read while that renewal was on its
    /// way may be younger than it, so it counts for the one after.
    last: Revision,
    before: Revision,
    /// Everything after this revision is to be read again.
    due: Option<Revision>,
    /// Everything after this revision is being read again; what was found so far.
    running: Option<(Revision, BTreeSet<Partition>)>,
}

impl Review {
    /// Takes note of what renewals told. `cursor` is how far the ledger was read, `revision` the highest that is known
    /// of it. Says whether something is to be read again.
    pub fn renewed(&mut self, renewed: Renewed, cursor: Revision, revision: Revision) -> bool {
        let hidden = renewed.unheard > self.sequence;
        let from = if hidden { 0 } else { self.before };
        self.sequence = renewed.sequence;
        (self.before, self.last) = (self.last, cursor);
        let wanted = revision > from;
        if wanted {
            self.due = Some(self.due.map_or(from, |due| due.min(from)));
        }
        wanted
    }

    /// Whether this was told already.
    pub fn knows(&self, renewed: Renewed) -> bool {
        self.sequence == renewed.sequence
    }

    /// Begins what is due, and tells from where to read for it.
    pub fn begin(&mut self) -> Option<Revision> {
        let due = self.due.take()?;
        let from = self.running.take().map_or(due, |(from, _)| from.min(due));
        self.running = Some((from, BTreeSet::new()));
        Some(from)
    }

    /// This was read.
    pub fn read(&mut self, partition: Partition) {
        if let Some((_, found)) = &mut self.running {
            found.insert(partition);
        }
    }

    /// The release of what this revision had revoked was acknowledged. If that is lost, the revocation is there again.
    pub fn released(&mut self, revoked: Revision) {
        let from = revoked.saturating_sub(1);
        (self.before, self.last) = (self.before.min(from), self.last.min(from));
    }

    /// All that there is was read. If that was to read it again: from where on, and what was found.
    pub fn end(&mut self) -> Option<(Revision, BTreeSet<Partition>)> {
        self.running.take()
    }
}
