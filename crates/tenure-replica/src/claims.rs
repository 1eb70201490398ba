//! Claims: how a lease is granted, or why it is not.

use serde_json::json;
use tenure_core::{ElectionName, NodeId, SessionId, Standing, Term};
use tenure_store::{Claim, EventKind, StoreError};

use crate::space::{Grant, Waiting};
use crate::transaction::Transaction;

/// What stands between a claim and a grant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    Held,
    Outranked,
}

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
        // Compared with what the candidate can have read, so before its own word raises the floor.
        let courteous = claim.outwaited != Some(seen.term);
        if overtaken || ended_since {
            return Ok(Standing::Refused { seen, outranked: false });
        }

        let election = self.space.elections.entry(claim.election.clone()).or_default();
        election.floor = election.floor.max(claim.above);
        if let Some(grant) = election.grant.as_mut().filter(|grant| grant.session == claim.session) {
            grant.attempt = grant.attempt.max(claim.attempt);
            return Ok(Standing::Leading { term: grant.term });
        }
        if let Some(over) = claim.over
            && election.grant.as_ref().is_some_and(|grant| grant.session == over.session)
        {
            self.retire(over);
        }
        match self.obstacle(claim, courteous) {
            None => {
                let term = self.grant(&claim.election, claim.session, node, claim.attempt);
                Ok(Standing::Leading { term })
            }
            Some(obstacle) => {
                self.wait(claim, node);
                let seen = self.record(&claim.election);
                Ok(Standing::Refused { seen, outranked: obstacle == Obstacle::Outranked })
            }
        }
    }

    fn obstacle(&self, claim: &Claim, courteous: bool) -> Option<Obstacle> {
        let election = self.space.elections.get(&claim.election)?;
        if election.grant.is_some() || claim.tell_only {
            return Some(Obstacle::Held);
        }
        let outranks = |rival: &Waiting| rival.session != claim.session && rival.priority > claim.priority;
        (courteous && election.waiting.iter().any(outranks)).then_some(Obstacle::Outranked)
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
