//! Petition: the leader is asked to give its term up. Only it can: it knows when its work has stopped.

use serde_json::json;
use tenure_core::{ElectionName, NodeId, Petition};
use tenure_store::{EventKind, Petitioned};

use crate::transaction::Transaction;

impl Transaction<'_> {
    /// [`Store::petition`](tenure_store::Store::petition).
    pub fn petition(&mut self, name: &ElectionName, to: Option<&NodeId>) -> Petitioned {
        let Some(election) = self.space.elections.get_mut(name) else { return Petitioned::NobodyLeads };
        let Some(grant) = &election.grant else { return Petitioned::NobodyLeads };
        if to.is_some_and(|to| !election.waiting.iter().any(|waiting| waiting.node == *to)) {
            return Petitioned::NotStanding;
        }
        let (leader, term, session) = (grant.node.clone(), grant.term, grant.session);
        let petition = Petition { term, to: to.cloned() };
        if election.petition.as_ref() != Some(&petition) {
            election.petition = Some(petition);
            if let Some(session) = self.space.sessions.get_mut(&session) {
                session.notices += 1;
            }
            let data = to.map_or_else(|| json!({}), |to| json!({"to": to.as_str()}));
            self.tell(EventKind::TransferRequested, name, Some(&leader), term, &data);
        }
        Petitioned::Noted { leader, term }
    }
}
