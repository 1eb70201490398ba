//! Claims: how a lease is granted, or why it is not.

use serde_json::json;
use tenure_core::{ElectionName, NodeId, SessionId, Standing, Term};
use tenure_store::{Claim, EventKind, StoreError};

use crate::space::{Grant, Waiting};
use crate::transaction::Transaction;

impl Transaction<'_> {
    /// [`Store::claim`](tenure_store::Store::claim).
    ///
    /// # Errors
    /// [`StoreError::SessionLost`], and nothing changed.
    pub fn claim(&mut self, claim: &Claim) -> Result<Standing, StoreError> {
        let session = self.live(claim.session)?;
        let node = session.info.id.clone();
        let overtaken = claim.attempt < session.barrier;
        let seen = self.record(&claim.election);
        let ended_since = claim.since.is_some_and(|since| seen.ended > since);
        if overtaken || ended_since {
            return Ok(Standing::Waiting { seen });
        }

        let election = self.space.elections.entry(claim.election.clone()).or_default();
        election.floor = election.floor.max(claim.above);
        if claim.tell_only {
            return Ok(Standing::Waiting { seen: self.record(&claim.election) });
        }
        if let Some(grant) = election.grant.as_mut().filter(|grant| grant.session == claim.session) {
            grant.attempt = grant.attempt.max(claim.attempt);
            return Ok(Standing::Leading { term: grant.term });
        }
        if let Some(over) = claim.over
            && election.grant.as_ref().is_some_and(|grant| grant.session == over.session)
        {
            self.retire(over);
        }
        let held = self.space.elections.get(&claim.election).is_some_and(|election| election.grant.is_some());
        let preferred = self.preferred_to(claim);
        if !held && preferred.is_none() {
            let term = self.grant(&claim.election, claim.session, node, claim.attempt);
            return Ok(Standing::Leading { term });
        }
        self.wait(claim, node);
        if !held {
            self.pass_on(&claim.election, preferred);
        }
        Ok(Standing::Waiting { seen: self.record(&claim.election) })
    }

    pub(crate) fn grant(
        &mut self,
        name: &ElectionName,
        session: SessionId,
        node: NodeId,
        attempt: u64,
    ) -> Term {
        self.start(name, &node);
        if let Ok(session) = self.live(session) {
            session.grants += 1;
        }
        let election = self.space.elections.entry(name.clone()).or_default();
        let term = election.term().next();
        election.granted = term;
        election.waiting.retain(|waiting| waiting.session != session);
        election.grant = Some(Grant { session, node: node.clone(), term, attempt });
        let previous = election.last_leader.replace(node.clone());
        self.tell(EventKind::LeaderElected, name, Some(&node), term, &json!({}));
        if let Some(previous) = previous.filter(|previous| *previous != node) {
            let data = json!({"previous": previous.as_str(), "new": node.as_str()});
            self.tell(EventKind::LeaderChanged, name, Some(&node), term, &data);
        }
        term
    }

    /// Registers a candidate so that others see it. Whoever claims again keeps its place.
    fn wait(&mut self, claim: &Claim, node: NodeId) {
        self.start(&claim.election, &node);
        let election = self.space.elections.entry(claim.election.clone()).or_default();
        if let Some(waiting) = election.waiting.iter_mut().find(|waiting| waiting.session == claim.session) {
            waiting.priority = claim.priority;
            waiting.attempt = waiting.attempt.max(claim.attempt);
            return;
        }
        self.space.arrivals += 1;
        election.waiting.push(Waiting {
            session: claim.session,
            node,
            priority: claim.priority,
            attempt: claim.attempt,
            arrival: self.space.arrivals,
        });
    }

    /// The first to stand since the beginning, or since an end, starts the election.
    fn start(&mut self, name: &ElectionName, node: &NodeId) {
        let election = self.space.elections.entry(name.clone()).or_default();
        if !std::mem::replace(&mut election.stood, true) {
            let term = election.term();
            self.tell(EventKind::ElectionStarted, name, Some(node), term, &json!({}));
        }
    }
}
