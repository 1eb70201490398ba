//! Deletion: an election is ended, and its term lives on.

use serde_json::json;
use tenure_core::ElectionName;
use tenure_store::{Deletion, EventKind};

use crate::transaction::Transaction;

impl Transaction<'_> {
    /// [`Store::delete`](tenure_store::Store::delete).
    ///
    /// The end consumes a term number, so that whoever compares terms sees that it came after
    /// everything before. A holder keeps its lease: only itself or its silence can free it.
    pub fn delete(&mut self, name: &ElectionName, force: bool) -> Deletion {
        let Some(election) = self.space.elections.get_mut(name).filter(|election| election.stood) else {
            return Deletion::Absent;
        };
        if election.grant.is_some() && !force {
            return Deletion::Led;
        }
        let ended = election.term().next();
        election.floor = ended;
        election.ended = ended;
        election.stood = false;
        election.waiting.clear();
        let holder = election.grant.as_ref().map(|grant| grant.session);
        if let Some(session) = holder.and_then(|holder| self.space.sessions.get_mut(&holder)) {
            session.notices += 1;
        }
        self.tell(EventKind::ElectionDeleted, name, None, ended, &json!({}));
        Deletion::Ended
    }
}
