//! What the machine tells its driver.

use crate::name::NodeId;
use crate::record::{Pulse, SessionId};
use crate::request::ElectionKey;
use crate::term::Term;
use crate::time::Instant;

/// Something happened that the driver or its user must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The session is open.
    Opened {
        /// Which.
        session: SessionId,
    },
    /// A session of the same node id has not lapsed yet, perhaps that of this node's former life.
    /// The machine waits until it has, or until it shows a sign of life.
    Occupied {
        /// What was seen of it.
        pulse: Pulse,
        /// When it will be taken for dead.
        until: Instant,
    },
    /// The session of the same node id is alive: another process has this id. The machine stops.
    NodeIdTaken,
    /// The store cannot be used until somebody changes something. The machine stops.
    Misconfigured,
    /// This node leads. The work may start.
    Elected {
        /// What.
        election: ElectionKey,
        /// Under this term.
        term: Term,
    },
    /// This node leads no longer. The work must stop, and [`stopped`](crate::Machine::stopped) be
    /// called once it has.
    Deposed {
        /// What.
        election: ElectionKey,
        /// The term that is over.
        term: Term,
        /// Why.
        reason: Reason,
    },
    /// The lease was freed, and the work had stopped before.
    Resigned {
        /// What.
        election: ElectionKey,
        /// The term that is over.
        term: Term,
    },
    /// The candidacy is off, and no claim of it can be granted any more.
    Withdrawn {
        /// Of what.
        election: ElectionKey,
    },
    /// The election was ended while this node stood for it.
    Ended {
        /// What.
        election: ElectionKey,
    },
    /// Another leads than before, or nobody.
    LeaderChanged {
        /// What.
        election: ElectionKey,
        /// Who, under which term.
        leader: Option<(NodeId, Term)>,
    },
    /// Renewals fail: unless one succeeds, the session is over at `deadline`.
    InJeopardy {
        /// When.
        deadline: Instant,
    },
    /// A renewal succeeded after all.
    Recovered,
    /// The session is over. Another is opened once all work under it has stopped.
    SessionLost {
        /// Why.
        reason: Reason,
    },
    /// The machine has come to its end. Nothing is held.
    Closed,
}

/// Why leadership ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The leader gave it up.
    Resigned,
    /// The leader gave it up because somebody asked for it, from outside.
    Asked,
    /// No renewal succeeded in time.
    Lapsed,
    /// The store says that the session is over.
    SessionLost,
    /// The store shows another holder, or a higher term.
    Superseded,
    /// Another store, or another history of it, answered.
    StoreChanged,
    /// The store has gone back in time.
    StoreRolledBack,
    /// The wall clock leapt against the boot clock: the machine may have been paused.
    ClockJumped,
    /// The application's health probe failed.
    Unhealthy,
    /// The election was ended.
    Ended,
    /// The node is closing.
    Closing,
    /// The thread that renews the session has died.
    DriverDied,
    /// This process is a fork of the one that was elected.
    Forked,
    /// Its supervised work failed more often than its budget allows.
    WorkFailed,
    /// There was nothing to end: it has not been elected yet.
    NotElected,
}

impl Reason {
    /// The reason in one word, as history and logs show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resigned => "resigned",
            Self::Asked => "asked",
            Self::Lapsed => "lapsed",
            Self::SessionLost => "session_lost",
            Self::Superseded => "superseded",
            Self::StoreChanged => "store_changed",
            Self::StoreRolledBack => "store_rolled_back",
            Self::ClockJumped => "clock_jumped",
            Self::Unhealthy => "unhealthy",
            Self::Ended => "election_ended",
            Self::Closing => "closing",
            Self::DriverDied => "driver_died",
            Self::Forked => "forked",
            Self::WorkFailed => "work_failed",
            Self::NotElected => "not_elected",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Resigned => "it resigned",
            Self::Asked => "it was asked to resign",
            Self::Lapsed => "no renewal succeeded in time",
            Self::SessionLost => "its session is over on the store",
            Self::Superseded => "the store shows another holder",
            Self::StoreChanged => "another store, or another history of it, answered",
            Self::StoreRolledBack => "the store has gone back in time",
            Self::ClockJumped => "the wall clock leapt: the machine may have been paused",
            Self::Unhealthy => "the application's health probe failed",
            Self::Ended => "the election was ended",
            Self::Closing => "the node is closing",
            Self::DriverDied => "the thread that renews the session has died",
            Self::Forked => "this process is a fork of the elected one",
            Self::WorkFailed => "its supervised work failed too often",
            Self::NotElected => "it has not been elected",
        })
    }
}
