//! Succession: a lease that is given up is granted to the next candidate by the same write.

use std::cmp::Reverse;

use tenure_core::{ElectionName, NodeId};
use tenure_store::Claim;

use crate::space::Waiting;
use crate::transaction::Transaction;

impl Transaction<'_> {
    /// Who is granted a lease that is given up: the named candidate if it stands, or else the first in line.
    pub(crate) fn successor(&self, election: &ElectionName, named: Option<&NodeId>) -> Option<Waiting> {
        let waiting = &self.space.elections.get(election)?.waiting;
        let named = named.and_then(|named| waiting.iter().find(|waiting| waiting.node == *named));
        named.cloned().or_else(|| self.first_in_line(election, |_| true))
    }

    /// Who is granted a lease that is free and claimed: the first in line whose priority is higher than the claim's.
    pub(crate) fn preferred_to(&self, claim: &Claim) -> Option<Waiting> {
        let preferred = |rival: &Waiting| rival.session != claim.session && rival.priority > claim.priority;
        self.first_in_line(&claim.election, preferred)
    }

    /// The first by priority and then by arrival. A candidate that was not renewed lately is probably gone, and is
    /// passed over.
    fn first_in_line(&self, election: &ElectionName, counts: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        let waiting = &self.space.elections.get(election)?.waiting;
        let renewed_lately = |waiting: &&Waiting| {
            let session = self.space.sessions.get(&waiting.session);
            session.is_some_and(|session| self.moment.now.since(session.renewed) <= session.ttl / 2)
        };
        let in_line = waiting.iter().filter(|waiting| counts(waiting)).filter(renewed_lately);
        in_line.min_by_key(|waiting| (Reverse(waiting.priority), waiting.arrival)).cloned()
    }

    /// Grants a lease that was given up. The successor leads once it has read so.
    pub(crate) fn pass_on(&mut self, election: &ElectionName, successor: Option<Waiting>) {
        if let Some(Waiting { session, node, attempt, .. }) = successor {
            self.grant(election, session, node, attempt);
        }
    }
}
