//! What a leader says of the whole cluster: told once.

use serde_json::json;
use tenure_store::{Declaration, EventKind};

use crate::transaction::Transaction;

impl Transaction<'_> {
    /// [`Store::declare`](tenure_store::Store::declare).
    pub fn declare(&mut self, declaration: &Declaration) -> bool {
        let Declaration { lease, degraded, live, minimum } = declaration;
        let Some(election) = self.space.elections.get_mut(&lease.election) else { return false };
        let grant = election.grant.as_ref();
        let Some(grant) = grant.filter(|grant| (grant.session, grant.term) == (lease.session, lease.term))
        else {
            return false;
        };
        if std::mem::replace(&mut election.degraded, *degraded) == *degraded {
            return false;
        }
        let node = grant.node.clone();
        let kind = if *degraded { EventKind::ClusterDegraded } else { EventKind::ClusterRecovered };
        let data = json!({"live": live, "minimum": minimum});
        self.tell(kind, &lease.election, Some(&node), lease.term, &data);
        true
    }
}
