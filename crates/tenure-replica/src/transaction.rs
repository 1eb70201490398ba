//! One verb, applied as a whole, at one instant.

use serde_json::Value;
use tenure_core::{ElectionName, Holder, NodeId, Record, SessionId, Term};
use tenure_store::{Changes, EventKind, EventRecord, Retention, StoreError};

use crate::replica::Moment;
use crate::space::{Session, Space};

/// One verb, under way.
pub struct Transaction<'a> {
    pub(crate) space: &'a mut Space,
    pub(crate) last_event: &'a mut u64,
    /// The newest event of earlier transactions.
    pub(crate) settled: u64,
    pub(crate) retention: Retention,
    pub(crate) moment: Moment,
    /// What this transaction has told the history: what the news is.
    pub(crate) changes: Changes,
}

impl Transaction<'_> {
    /// The session, if it is neither over nor unknown.
    pub(crate) fn live(&mut self, session: SessionId) -> Result<&mut Session, StoreError> {
        self.space.sessions.get_mut(&session).filter(|found| found.is_live()).ok_or(StoreError::SessionLost)
    }

    /// The election as its readers see it.
    #[must_use]
    pub fn record(&self, election: &ElectionName) -> Record {
        let Some(election) = self.space.elections.get(election) else { return Record::default() };
        let holder = election.grant.as_ref().and_then(|grant| {
            let session = self.space.sessions.get(&grant.session)?;
            let pulse = session.pulse(grant.session, &self.moment);
            Some(Holder { node: grant.node.clone(), term: grant.term, pulse })
        });
        Record { term: election.term(), holder, ended: election.ended, petition: election.petition.clone() }
    }

    /// Records what happened to an election.
    pub(crate) fn tell(
        &mut self,
        kind: EventKind,
        election: &ElectionName,
        node: Option<&NodeId>,
        term: Term,
        data: &Value,
    ) {
        self.append(kind, Some(election), node, term, data);
        self.changes.note(kind, election, node);
    }

    /// Records what happened to a node.
    pub(crate) fn tell_of_node(&mut self, kind: EventKind, node: &NodeId, data: &Value) {
        self.append(kind, None, Some(node), Term::NONE, data);
        self.changes.note_nodes();
    }

    fn append(
        &mut self,
        kind: EventKind,
        election: Option<&ElectionName>,
        node: Option<&NodeId>,
        term: Term,
        data: &Value,
    ) {
        *self.last_event += 1;
        let event = EventRecord {
            id: *self.last_event,
            sequence: 0, // given by the log
            time: self.moment.wall,
            kind,
            election: election.cloned(),
            node: node.cloned(),
            term,
            data: data.to_string(),
        };
        self.space.history.append(event, self.retention, self.settled);
    }
}
