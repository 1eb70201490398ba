//! What the store keeps for one namespace.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use tenure_core::{ElectionName, Instant, NodeId, Petition, Pulse, Sequence, SessionId, Stamp, Term};
use tenure_store::{NodeInfo, NodeState, Unhealthy};

use crate::history::History;
use crate::ledger::Ledger;
use crate::replica::Moment;

#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Space {
    /// Also those that are over: a late request must find out that its session is lost, and must
    /// not open it anew.
    pub sessions: BTreeMap<SessionId, Session>,
    /// The newest session of every node that ever registered.
    pub nodes: BTreeMap<NodeId, SessionId>,
    /// All that were ever stood for.
    pub elections: BTreeMap<ElectionName, Election>,
    /// Who owns which partition, by the election whose leader says so.
    pub ledgers: BTreeMap<ElectionName, Ledger>,
    pub history: History,
    /// Numbers the candidates in the order in which they stood up.
    pub arrivals: u64,
}

impl Space {
    /// Everything begins with a session, or with somebody who says what work there is.
    pub(crate) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.ledgers.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Session {
    pub info: NodeInfo,
    pub state: NodeState,
    pub sequence: Sequence,
    pub ttl: Duration,
    /// When it was opened, for people to read.
    pub opened_at: SystemTime,
    /// When the last sign of life arrived, on the clock that sessions are counted on.
    pub renewed: Instant,
    /// The same on the wall clock, for people to read.
    pub renewed_at: SystemTime,
    /// The highest attempt of a resignation: claims with a lower one were overtaken.
    pub barrier: u64,
    /// How often others have left word for this session.
    pub notices: u64,
    pub grants: u64,
    /// That its health probe fails, and the number of the report that said so, or that it passes.
    pub unhealthy: Option<Unhealthy>,
    pub health_report: u64,
}

impl Session {
    pub(crate) fn is_live(&self) -> bool {
        self.state == NodeState::Live
    }

    pub(crate) fn pulse(&self, session: SessionId, moment: &Moment) -> Pulse {
        Pulse {
            stamp: Stamp { session, sequence: self.sequence },
            ttl: self.ttl,
            age: moment.age(self.renewed),
        }
    }

    /// Notes a sign of life. The sequence never falls. The age restarts even for a duplicate: to
    /// believe in a life for too long delays a take-over, to doubt it too early breaks a lease.
    pub(crate) fn renew(&mut self, sequence: Sequence, moment: &Moment) {
        self.sequence = self.sequence.max(sequence);
        self.renewed = moment.now;
        self.renewed_at = moment.wall;
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Election {
    /// The highest term granted.
    pub granted: Term,
    /// The highest term reported by a claim, or consumed by an end.
    pub floor: Term,
    /// The term under which the election was last ended.
    pub ended: Term,
    /// Somebody has stood since the election began, or since it was last ended.
    pub stood: bool,
    /// The grant in force. Its session is live: whatever ends a session frees its leases.
    pub grant: Option<Grant>,
    /// What the leader of its term was asked.
    pub petition: Option<Petition>,
    /// Its leader has said that the cluster is below its minimum.
    pub degraded: bool,
    /// Who led last, to tell a change of leader from a return.
    pub last_leader: Option<NodeId>,
    /// Who waits, in the order in which they stood up. All of live sessions.
    pub waiting: Vec<Waiting>,
}

impl Election {
    /// What [`tenure_core::Record::term`] shows.
    pub(crate) fn term(&self) -> Term {
        self.granted.max(self.floor)
    }
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Grant {
    pub session: SessionId,
    pub node: NodeId,
    pub term: Term,
    /// The highest attempt that was answered with this grant. A resignation with a lower one was
    /// sent before that answer, so it is not about this grant.
    pub attempt: u64,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Waiting {
    pub session: SessionId,
    pub node: NodeId,
    pub priority: i32,
    /// The highest attempt of its claims, as in [`Grant::attempt`].
    pub attempt: u64,
    pub arrival: u64,
}
