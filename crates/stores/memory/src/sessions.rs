//! Sessions: opened, renewed, closed, superseded, retired.

use std::time::SystemTime;

use serde_json::json;
use tenure_core::{Opening, Renewal, Sequence, SessionId, Stamp};
use tenure_store::{EventKind, NodeState, Open, StoreError};

use crate::space::Session;
use crate::transaction::Transaction;

/// Why a session is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its node closed it.
    Closed,
    /// Its own process has opened another one.
    Superseded,
    /// It was silent for its whole life.
    Lapsed,
}

impl Transaction<'_> {
    pub(crate) fn open(&mut self, request: Open) -> Result<Opening, StoreError> {
        if self.space.sessions.contains_key(&request.session) {
            let now = self.now;
            let session = self.live(request.session)?;
            session.renew(request.sequence, now);
            return Ok(Opening::Opened { ttl: session.ttl });
        }
        // Looked for before anything is ended: an occupied node id changes nothing.
        let occupants = self.sessions_of(&request);
        let makes_way =
            |stamp: &Stamp| request.supersedes == Some(stamp.session) || request.over == Some(*stamp);
        if let Some(occupant) = occupants.iter().find(|&stamp| !makes_way(stamp)) {
            let pulse = self.space.sessions[&occupant.session].pulse(occupant.session, self.now);
            return Ok(Opening::Occupied { pulse });
        }
        if let Some(session) = request.supersedes {
            self.end(session, Ending::Superseded);
        }
        for stamp in occupants {
            self.end(stamp.session, Ending::Lapsed);
        }
        Ok(self.register(request))
    }

    /// The signs of life of all live sessions of the node that asks.
    fn sessions_of(&self, request: &Open) -> Vec<Stamp> {
        let sessions = self.space.sessions.iter();
        sessions
            .filter(|(_, session)| session.is_live() && session.info.id == request.node.id)
            .map(|(&id, session)| Stamp { session: id, sequence: session.sequence })
            .collect()
    }

    fn register(&mut self, request: Open) -> Opening {
        let node = request.node.id.clone();
        let joined = json!({"hostname": request.node.hostname, "pid": request.node.pid});
        self.space.nodes.insert(node.clone(), request.session);
        let session = Session {
            info: request.node,
            state: NodeState::Live,
            sequence: request.sequence,
            ttl: request.ttl,
            renewed: self.now,
            renewed_at: SystemTime::now(),
            barrier: 0,
            notices: 0,
            grants: 0,
        };
        self.space.sessions.insert(request.session, session);
        self.tell_of_node(EventKind::NodeJoined, &node, &joined);
        Opening::Opened { ttl: request.ttl }
    }

    pub(crate) fn renew(&mut self, session: SessionId, sequence: Sequence) -> Result<Renewal, StoreError> {
        let now = self.now;
        let session = self.live(session)?;
        let previous = session.sequence;
        session.renew(sequence, now);
        Ok(Renewal { previous, notices: session.notices, grants: session.grants })
    }

    pub(crate) fn close(&mut self, session: SessionId) {
        self.end(session, Ending::Closed);
    }

    /// Ends a session if it shows exactly this sign of life.
    pub(crate) fn retire(&mut self, over: Stamp) {
        if self.live(over.session).is_ok_and(|session| session.sequence == over.sequence) {
            self.end(over.session, Ending::Lapsed);
        }
    }

    /// Ends a live session and everything that hangs from it; any other one is left as it is.
    fn end(&mut self, session: SessionId, ending: Ending) {
        let Ok(over) = self.live(session) else { return };
        over.state = if ending == Ending::Lapsed { NodeState::Expired } else { NodeState::Left };
        let node = over.info.id.clone();
        let renewed = over.renewed;
        let silent = u64::try_from(self.now.since(renewed).as_millis()).unwrap_or(u64::MAX);
        let mut freed = Vec::new();
        for (name, election) in &mut self.space.elections {
            election.waiting.retain(|waiting| waiting.session != session);
            election.heir.take_if(|heir| *heir == node); // nothing is kept for a node that is no more
            if let Some(grant) = election.grant.take_if(|grant| grant.session == session) {
                freed.push((name.clone(), grant.term));
            }
        }
        let (kind, data) = match ending {
            Ending::Closed => (EventKind::LeaderResigned, json!({})),
            Ending::Superseded => (EventKind::LeaderLost, json!({"reason": "superseded"})),
            Ending::Lapsed => (EventKind::LeaderLost, json!({"reason": "lapsed", "silent_ms": silent})),
        };
        for (election, term) in freed {
            self.tell(kind, &election, Some(&node), term, &data);
        }
        match ending {
            Ending::Closed => self.tell_of_node(EventKind::NodeLeft, &node, &json!({})),
            Ending::Superseded => {
                self.tell_of_node(EventKind::NodeLeft, &node, &json!({"reason": "superseded"}));
            }
            Ending::Lapsed => self.tell_of_node(EventKind::NodeExpired, &node, &json!({})),
        }
    }
}
