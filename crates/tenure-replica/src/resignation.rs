//! Resignation: a lease, a place among the candidates, or an unanswered claim is given up.

use serde_json::{Value, json};
use tenure_core::NodeId;
use tenure_store::{EventKind, Resign};

use crate::transaction::Transaction;

impl Transaction<'_> {
    /// [`Store::resign`](tenure_store::Store::resign).
    ///
    /// Under a session that is over there is nothing left to give up, so that is no error.
    pub fn resign(&mut self, resign: &Resign) {
        let Ok(session) = self.live(resign.session) else { return };
        session.barrier = session.barrier.max(resign.attempt);
        let Some(election) = self.space.elections.get_mut(&resign.election) else { return };

        // A resignation that arrives late must not undo a claim that was sent after it: its node
        // may have been told since that it leads.
        election
            .waiting
            .retain(|waiting| waiting.session != resign.session || waiting.attempt > resign.attempt);
        let Some(grant) = election.grant.take_if(|grant| {
            grant.session == resign.session
                && grant.attempt <= resign.attempt
                && resign.term.is_none_or(|term| term == grant.term)
        }) else {
            return;
        };

        let asked = election.petition.as_ref().is_some_and(|petition| petition.term == grant.term);
        let successor = self.successor(&resign.election, resign.to.as_ref());
        let named = |node: &NodeId| asked || resign.to.as_ref() == Some(node);
        let (election, node) = (&resign.election, Some(&grant.node));
        let mut data = resign.cause.data();
        if let Some(successor) = successor.as_ref().filter(|successor| named(&successor.node)) {
            let to = json!(successor.node.as_str());
            data.insert(String::from("to"), to.clone());
            if !asked {
                self.tell(EventKind::TransferRequested, election, node, grant.term, &json!({"to": to}));
            }
        }
        self.tell(resign.cause.event(), election, node, grant.term, &Value::Object(data));
        self.pass_on(election, successor);
    }
}
