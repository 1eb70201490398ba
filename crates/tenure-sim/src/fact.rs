//! What happened in the world, for the invariants to judge.

use std::time::Duration;

use tenure_core::partitions::{Partition, Revision};
use tenure_core::{Event, SessionId, Term};

use crate::clock::Real;
use crate::config::MOST_ELECTIONS;

/// How a lease came free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// The holder resigned it.
    Resigned,
    /// The holder closed its session.
    Closed,
    /// The holder opened another session.
    Superseded,
    /// The holder's session was retired.
    Lapsed,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Fact {
    /// The store granted a term.
    Granted {
        /// What.
        election: usize,
        /// To whom.
        node: usize,
        /// In which of its lives.
        life: u32,
        /// Under which session.
        session: SessionId,
        /// Which term.
        term: Term,
        /// The candidate that came next, if the lease was passed on by the write that freed it; `None` if it was claimed.
        next: Option<usize>,
        /// When it had been asked for.
        sent: Real,
        /// When.
        at: Real,
    },
    /// The store took a session for dead.
    Retired {
        /// Which.
        session: SessionId,
        /// Whose.
        node: usize,
        /// When its last sign of life was applied.
        applied: Real,
        /// How long it should have lived.
        ttl: Duration,
        /// When.
        at: Real,
    },
    /// A lease came free.
    Freed {
        /// What.
        election: usize,
        /// Whose it was.
        node: usize,
        /// How.
        how: Freed,
        /// When the session's last sign of life was applied, and how long it lived on that.
        pulse: (Real, Duration),
    },
    /// An election was ended.
    Deleted {
        /// Which.
        election: usize,
        /// By which number its candidates tell.
        number: Term,
    },
    /// A renewal was applied.
    Renewed {
        /// Which session.
        session: SessionId,
        /// Whose.
        node: usize,
        /// In which of its lives.
        life: u32,
    },
    /// A machine said something.
    Said {
        /// Which.
        node: usize,
        /// In which of its lives.
        life: u32,
        /// What.
        event: Event,
    },
    /// The machine was told that its session is over, and waited for that answer.
    ToldSessionLost {
        /// Which.
        node: usize,
    },
    /// A renewal of this node was not confirmed, and it knows.
    Unrenewed {
        /// Which.
        node: usize,
    },
    /// A node has dealt with an input.
    Settled {
        /// Which.
        node: usize,
        /// Under which terms it passes its checks now, by election.
        leads: [Option<Term>; MOST_ELECTIONS],
    },
    /// A node is about to deal with an input.
    Wakes {
        /// Which.
        node: usize,
        /// Under which terms it passes its checks before it has dealt with it, by election.
        leads: [Option<Term>; MOST_ELECTIONS],
    },
    /// A session is over by its node's own will: closed, or superseded by another.
    GivenUp {
        /// Whose.
        node: usize,
        /// In which of its lives.
        life: u32,
    },
    /// A partition was given to somebody.
    Given {
        /// Which.
        partition: Partition,
        /// To whom.
        node: usize,
        /// Whose it was, if that one's session was live.
        over: Option<usize>,
        /// Its fencing token.
        revision: Revision,
    },
    /// A worker's acknowledgement made a partition vacant.
    Released {
        /// Which.
        partition: Partition,
        /// Whose it was.
        node: usize,
        /// In which of its lives.
        life: u32,
    },
    /// A coordinator wrote into the ledger.
    Published {
        /// Under which term.
        term: Term,
        /// How many partitions are being revoked now.
        moving: usize,
        /// Whether any of them was asked for here.
        revoked: bool,
    },
    /// A node that watches the cluster has found a session silent for its whole life.
    FoundSilent {
        /// Which node has.
        by: usize,
        /// Which session.
        session: SessionId,
        /// When the sign of life that it has seen last was applied.
        applied: Real,
        /// How long that session should live on it.
        ttl: Duration,
        /// When.
        at: Real,
    },
    /// A candidate that fails back has asked the leader to make way.
    AskedToMakeWay {
        /// Which node.
        node: usize,
        /// In which election.
        election: usize,
        /// Whom it takes for the leader.
        leader: usize,
        /// Whether it stood when it made up its mind.
        stood: bool,
    },
    /// The store went back in time; `silent` if nothing tells.
    RolledBack {
        /// Whether its identity stayed the same.
        silent: bool,
    },
}
