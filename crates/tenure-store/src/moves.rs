//! What the history tells of a publication.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tenure_core::SessionId;
use tenure_core::partitions::{Change, Partition, Revision};

use crate::history::EventKind;

/// What a publication has changed, and for whom.
#[derive(Debug, Default)]
pub struct Moves {
    assigned: BTreeSet<(SessionId, Partition)>,
    revoked: BTreeSet<(SessionId, Partition)>,
}

impl Moves {
    /// This was written: the partition has this owner now, or is still its owner's.
    pub fn note(&mut self, change: &Change, owner: SessionId) {
        let moved = match change {
            Change::Assign { .. } => &mut self.assigned,
            Change::Revoke { .. } => &mut self.revoked,
        };
        moved.insert((owner, change.partition()));
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.assigned.is_empty() && self.revoked.is_empty()
    }

    /// Whom it concerns.
    #[must_use]
    pub fn owners(&self) -> BTreeSet<SessionId> {
        self.assigned.iter().chain(&self.revoked).map(|(owner, _)| *owner).collect()
    }

    /// The lines of the history: the plan with its numbers, then what was revoked from whom, and what was
    /// assigned to whom. However many partitions are moved, that is three at most.
    #[must_use]
    pub fn events(
        &self,
        revision: Revision,
        node: impl Fn(SessionId) -> Option<String>,
        list: impl Fn(u32) -> Option<String>,
    ) -> Vec<(EventKind, Value)> {
        let (assigned, revoked) = (self.assigned.len(), self.revoked.len());
        let plan = json!({"revision": revision, "assigned": assigned, "revoked": revoked});
        let mut events = vec![(EventKind::PlanPublished, plan)];
        for (moved, kind, word) in [
            (&self.revoked, EventKind::PartitionRevoked, "from"),
            (&self.assigned, EventKind::PartitionAssigned, "to"),
        ] {
            if !moved.is_empty() {
                let shares = shares(moved, &node, &list);
                events.push((kind, json!({"revision": revision, word: shares})));
            }
        }
        events
    }
}

/// The numbers of partitions, by node and by task list.
type Shares = BTreeMap<String, BTreeMap<String, Vec<u32>>>;

fn shares(
    moved: &BTreeSet<(SessionId, Partition)>,
    node: impl Fn(SessionId) -> Option<String>,
    list: impl Fn(u32) -> Option<String>,
) -> Shares {
    let mut shares = Shares::new();
    for (owner, partition) in moved {
        let node = node(*owner).unwrap_or_else(|| owner.to_string());
        let list = list(partition.list).unwrap_or_else(|| partition.list.to_string());
        shares.entry(node).or_default().entry(list).or_default().push(partition.number);
    }
    shares
}
