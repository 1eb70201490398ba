//! Sessions: opened, renewed, closed, superseded, retired.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{ElectionName, MOST_TOLD, NodeId, Opening, Renewal, Sequence, SessionId, Stamp};
use tenure_store::{Cause, EventKind, NodeState, Open, Silence, StoreError};

use crate::space::{Election, Session};
use crate::transaction::Transaction;

/// So many sessions that are over are remembered per namespace: the newest, as on the SQL stores.
const PAST_SESSIONS: usize = 1_000;

/// Why a session is over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was closed.
    Closed(Cause),
    /// Its own process has opened another one.
    Superseded,
    /// It was silent for its whole life.
    Lapsed,
}

impl Transaction<'_> {
    /// [`Store::open`](tenure_store::Store::open).
    ///
    /// # Errors
    /// [`StoreError::SessionLost`], and nothing changed.
    pub fn open(&mut self, request: Open) -> Result<Opening, StoreError> {
        if self.space.sessions.contains_key(&request.session) {
            let moment = self.moment;
            let session = self.live(request.session)?;
            session.renew(request.sequence, &moment);
            return Ok(Opening::Opened { ttl: session.ttl });
        }
        // Looked for before anything is ended: an occupied node id changes nothing.
        let occupants = self.sessions_of(&request);
        let makes_way =
            |stamp: &Stamp| request.supersedes == Some(stamp.session) || request.over == Some(*stamp);
        if let Some(occupant) = occupants.iter().find(|&stamp| !makes_way(stamp)) {
            let pulse = self.space.sessions[&occupant.session].pulse(occupant.session, &self.moment);
            return Ok(Opening::Occupied { pulse });
        }
        if let Some(session) = request.supersedes {
            self.end(session, Ending::Superseded);
        }
        for stamp in occupants {
            self.end(stamp.session, Ending::Lapsed);
        }
        self.forget(&request.node.id);
        Ok(self.register(request))
    }

    /// Drops the ended sessions of a node that is back, and the oldest of those that never came back. Nothing
    /// hangs from them.
    fn forget(&mut self, node: &NodeId) {
        let space = &mut *self.space;
        space.sessions.retain(|_, session| session.is_live() || session.info.id != *node);
        let past = space.sessions.iter().filter(|(_, session)| !session.is_live());
        let mut past: Vec<_> = past.map(|(&id, session)| (session.opened_at, id)).collect();
        if let Some(beyond) = past.len().checked_sub(PAST_SESSIONS) {
            past.sort_unstable();
            for (_, id) in &past[..beyond] {
                space.sessions.remove(id);
            }
        }
        space.nodes.retain(|_, session| space.sessions.contains_key(session));
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
        let info = &request.node;
        let joined = json!({
            "hostname": info.hostname, "address": info.address, "pid": info.pid, "version": info.version,
        });
        self.space.nodes.insert(node.clone(), request.session);
        let session = Session {
            info: request.node,
            state: NodeState::Live,
            sequence: request.sequence,
            ttl: request.ttl,
            opened_at: self.moment.wall,
            renewed: self.moment.now,
            renewed_at: self.moment.wall,
            barrier: 0,
            notices: 0,
            grants: 0,
            unhealthy: None,
            health_report: 0,
        };
        self.space.sessions.insert(request.session, session);
        self.tell_of_node(EventKind::NodeJoined, &node, &joined);
        Opening::Opened { ttl: request.ttl }
    }

    /// [`Store::renew`](tenure_store::Store::renew).
    ///
    /// # Errors
    /// [`StoreError::SessionLost`], and nothing changed.
    pub fn renew(
        &mut self,
        session: SessionId,
        sequence: Sequence,
    ) -> Result<Renewal<ElectionName>, StoreError> {
        let moment = self.moment;
        let renewed = self.live(session)?;
        let previous = renewed.sequence;
        renewed.renew(sequence, &moment);
        let (notices, grants) = (renewed.notices, renewed.grants);
        let waits = |election: &Election| election.waiting.iter().any(|waiting| waiting.session == session);
        let waits_for = self.space.elections.iter().filter(|(_, election)| waits(election));
        let waits_for = waits_for.take(MOST_TOLD).map(|(name, _)| (name.clone(), self.record(name)));
        Ok(Renewal { previous, notices, grants, waits_for: waits_for.collect() })
    }

    /// [`Store::close`](tenure_store::Store::close).
    pub fn close(&mut self, session: SessionId, cause: Cause) {
        self.end(session, Ending::Closed(cause));
    }

    /// [`Store::retire`](tenure_store::Store::retire): ends a session if it shows exactly this sign of life.
    pub fn retire(&mut self, over: Stamp) -> bool {
        let silent = self.live(over.session).is_ok_and(|session| session.sequence == over.sequence);
        if silent {
            self.end(over.session, Ending::Lapsed);
        }
        silent
    }

    /// [`Store::purge`](tenure_store::Store::purge): forgets nodes that are no more. Nothing hangs from them.
    pub fn purge(&mut self, older_than: Duration) -> u64 {
        let wall = self.moment.wall;
        let kept = |session: &Session| {
            let age = wall.duration_since(session.renewed_at).unwrap_or_default();
            session.is_live() || age <= older_than
        };
        let space = &mut *self.space;
        let before = space.nodes.len();
        space.sessions.retain(|_, session| kept(session));
        space.nodes.retain(|_, session| space.sessions.contains_key(session));
        (before - space.nodes.len()) as u64
    }

    /// Ends a live session and everything that hangs from it; any other one is left as it is.
    fn end(&mut self, session: SessionId, ending: Ending) {
        let Ok(over) = self.live(session) else { return };
        over.state = if ending == Ending::Lapsed { NodeState::Expired } else { NodeState::Left };
        let node = over.info.id.clone();
        let (renewed, renewed_at, ttl) = (over.renewed, over.renewed_at, over.ttl);
        let silent = self.moment.silence(renewed, renewed_at);
        let silence =
            Silence { silent: Some(silent), ttl: Some(ttl), reopened: ending == Ending::Superseded };
        let mut freed = Vec::new();
        for (name, election) in &mut self.space.elections {
            election.waiting.retain(|waiting| waiting.session != session);
            if let Some(grant) = election.grant.take_if(|grant| grant.session == session) {
                freed.push((name.clone(), grant.term));
            }
        }
        let (kind, data) = match ending {
            Ending::Closed(cause) => (cause.event(), Value::Object(cause.data())),
            Ending::Superseded | Ending::Lapsed => (EventKind::LeaderLost, Value::Object(silence.data())),
        };
        for (election, term) in freed {
            self.tell(kind, &election, Some(&node), term, &data);
            if matches!(ending, Ending::Closed(_)) {
                self.pass_on(&election, self.successor(&election, None));
            }
        }
        match ending {
            Ending::Closed(_) | Ending::Superseded => self.tell_of_node(EventKind::NodeLeft, &node, &data),
            Ending::Lapsed => self.tell_of_node(EventKind::NodeExpired, &node, &json!({})),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use tenure_core::{Instant, NodeId};
    use tenure_store::{NodeInfo, Options};

    use super::*;
    use crate::{Ages, Moment, Replica};

    fn transact<T>(replica: &mut Replica, second: u64, verb: impl FnOnce(&mut Transaction<'_>) -> T) -> T {
        let since = Duration::from_secs(second);
        let moment = Moment {
            now: Instant::from_nanos(second * 1_000_000_000),
            wall: SystemTime::UNIX_EPOCH + since,
            ages: Ages::Told,
        };
        replica.transact(&Options::default(), moment, verb).0
    }

    fn request(session: u128, node: &str) -> Open {
        let node = NodeInfo::new(NodeId::new(node).unwrap(), "here");
        let (session, ttl) = (SessionId::from_u128(session), Duration::from_secs(1));
        Open { session, sequence: 1, ttl, node, supersedes: None, over: None }
    }

    fn session_count(replica: &mut Replica) -> usize {
        transact(replica, 0, |transaction| transaction.space.sessions.len())
    }

    #[test]
    fn of_nodes_that_never_come_back_only_the_newest_are_remembered() {
        let mut replica = Replica::default();
        transact(&mut replica, 0, |transaction| transaction.open(request(1, "stays"))).unwrap();
        for number in 2..1_300 {
            let (session, node) = (SessionId::from_u128(number), format!("run-{number}"));
            let second = u64::try_from(number).unwrap();
            transact(&mut replica, second, |transaction| transaction.open(request(number, &node))).unwrap();
            transact(&mut replica, second, |transaction| transaction.close(session, Cause::Resigned));
        }
        // The last one was ended after the last look.
        assert_eq!(session_count(&mut replica), 1 + PAST_SESSIONS + 1);
        let nodes = transact(&mut replica, 0, |transaction| transaction.nodes());
        assert_eq!(nodes.len(), 1 + PAST_SESSIONS + 1, "nobody is listed without a session");
        let known = |number: u128| nodes.iter().any(|node| node.session() == SessionId::from_u128(number));
        assert!(known(1), "what lives stays, however old");
        assert!(known(1_299) && known(299) && !known(298), "the oldest go first");
    }

    #[test]
    fn a_node_that_comes_back_again_and_again_is_remembered_once() {
        let mut replica = Replica::default();
        for number in 1..100 {
            let session = SessionId::from_u128(number);
            transact(&mut replica, 1, |transaction| transaction.open(request(number, "n"))).unwrap();
            transact(&mut replica, 1, |transaction| transaction.close(session, Cause::Resigned));
            let late = transact(&mut replica, 1, |transaction| transaction.open(request(number, "n")));
            assert!(matches!(late, Err(StoreError::SessionLost)), "what is over stays over");
        }
        assert_eq!(session_count(&mut replica), 1);
    }
}
