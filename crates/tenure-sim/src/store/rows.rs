//! What the rest of the model asks of the store: the ledger, its sessions and their leases.

use tenure_core::{NodeId, Plant, SessionId, StoreIdentity, Term};

use super::ModelStore;
use crate::ledger::Ledger;

impl ModelStore {
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.state.ledger
    }

    pub(crate) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.state.ledger
    }

    pub(crate) fn has(&self, plant: Plant) -> bool {
        self.planted.has(plant)
    }

    pub(crate) fn identity(&self) -> StoreIdentity {
        StoreIdentity(self.identity)
    }

    /// Every session: whose it is, and whether it is live.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (SessionId, usize, bool)> + '_ {
        self.state.sessions.iter().map(|row| (row.id, row.node, row.live))
    }

    pub(crate) fn name(&self, node: usize) -> NodeId {
        self.names[node].clone()
    }

    pub(crate) fn life_of(&self, id: SessionId) -> Option<(usize, u32)> {
        self.state.sessions.iter().find(|row| row.id == id).map(|row| (row.node, row.life))
    }

    pub(crate) fn node_of(&self, id: SessionId) -> Option<usize> {
        self.life_of(id).map(|(node, _)| node)
    }

    pub(crate) fn notices(&self, id: SessionId) -> u64 {
        self.state.sessions.iter().find(|row| row.id == id).map_or(0, |row| row.notices)
    }

    /// Leaves word for a session.
    pub(crate) fn notify(&mut self, id: SessionId) {
        if let Some(row) = self.session(id) {
            row.notices += 1;
        }
    }

    pub(crate) fn leads(&self, election: usize, id: SessionId, term: Term) -> bool {
        let lease = &self.state.leases[election];
        lease.holder == Some(id) && lease.term == term
    }
}
