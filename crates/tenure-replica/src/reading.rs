//! Reads: what others see.

use std::cmp::Reverse;

use tenure_core::{ElectionName, Record};
use tenure_store::{Candidate, EventQuery, EventRecord, NodeRecord};

use crate::transaction::Transaction;

impl Transaction<'_> {
    /// Who stands: by priority, then by who stood up first.
    #[must_use]
    pub fn candidates(&self, election: &ElectionName) -> Vec<Candidate> {
        let Some(election) = self.space.elections.get(election) else { return Vec::new() };
        let mut waiting: Vec<_> = election.waiting.iter().collect();
        waiting.sort_by_key(|waiting| (Reverse(waiting.priority), waiting.arrival));
        waiting
            .into_iter()
            .map(|waiting| Candidate { node: waiting.node.clone(), priority: waiting.priority })
            .collect()
    }

    /// All that were ever stood for.
    #[must_use]
    pub fn elections(&self) -> Vec<(ElectionName, Record)> {
        self.space.elections.keys().map(|name| (name.clone(), self.record(name))).collect()
    }

    /// The newest session of every node.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeRecord> {
        let newest = self.space.nodes.values();
        newest
            .filter_map(|&id| {
                let session = self.space.sessions.get(&id)?;
                Some(NodeRecord {
                    info: session.info.clone(),
                    state: session.state,
                    pulse: session.pulse(id, &self.moment),
                    opened_at: session.opened_at,
                    renewed_at: session.renewed_at,
                    unhealthy: session.unhealthy.clone(),
                })
            })
            .collect()
    }

    /// A part of the history.
    #[must_use]
    pub fn events(&self, query: &EventQuery) -> Vec<EventRecord> {
        self.space.history.read(query)
    }
}
