//! What the machine asks of a store, and what it may hear back.

use std::time::Duration;

use crate::name::NodeId;
use crate::record::{Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing};
use crate::term::Term;
use crate::time::Instant;

/// An election of one machine; its driver knows the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElectionKey(pub(crate) u32);

impl ElectionKey {
    /// Counts from 0 in the order in which elections were added; freed numbers are used again.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Tells replies apart. A reply to a request that was given up finds no owner, and is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    pub(crate) serial: u64,
    pub(crate) about: About,
}

impl RequestId {
    /// Rises with every request of a machine.
    #[must_use]
    pub const fn serial(self) -> u64 {
        self.serial
    }

    /// The election that the request is about; none if it is about the session.
    #[must_use]
    pub const fn election(self) -> Option<ElectionKey> {
        match self.about {
            About::Session => None,
            About::Election(key) => Some(key),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum About {
    Session,
    Election(ElectionKey),
}

/// The longest timeout of a request and the longest pause before it is repeated. With a ttl of hours, a connection that
/// hangs must not keep a node from asking again over another one for a part of that ttl.
pub(crate) const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout of a request under a session with this ttl: long enough for a slow store, short enough to try again.
pub(crate) fn timeout(ttl: Duration) -> Duration {
    (ttl / 6).min(LONGEST_TIMEOUT)
}

/// Something to ask of the store, at once.
#[derive(Clone, Debug)]
pub struct Request {
    /// Goes back with the reply.
    pub id: RequestId,
    /// When the machine stops waiting: the driver may abandon the attempt then.
    pub give_up: Instant,
    /// What to ask.
    pub verb: Verb,
}

/// The verbs of a store, as the machine speaks them. The contract crate documents each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Open a session.
    Open {
        /// Its id.
        session: SessionId,
        /// Rises with every attempt.
        sequence: Sequence,
        /// The life asked for.
        ttl: Duration,
        /// An earlier session of this process, which is over.
        supersedes: Option<SessionId>,
        /// A silent session of the same node id.
        over: Option<Stamp>,
    },
    /// Keep a session.
    Renew {
        /// Which.
        session: SessionId,
        /// Rises with every attempt.
        sequence: Sequence,
        /// Counts the attempts of this renewal from 1.
        attempt: u32,
    },
    /// Stand, or ask where we stand.
    Claim {
        /// Under which session.
        session: SessionId,
        /// For what.
        election: ElectionKey,
        /// Rises with every claim and resignation of the session.
        attempt: u64,
        /// Higher stands first.
        priority: i32,
        /// A silent session to retire.
        over: Option<Stamp>,
        /// Only take note of `above`.
        tell_only: bool,
        /// The highest term seen.
        above: Term,
        /// The term at which this candidate first saw the election.
        since: Option<Term>,
    },
    /// Give up a lease or a candidacy.
    Resign {
        /// Under which session.
        session: SessionId,
        /// Of what.
        election: ElectionKey,
        /// Voids every claim with a lower number.
        attempt: u64,
        /// Only this term; `None`: whatever is held.
        term: Option<Term>,
        /// To whom.
        to: Option<NodeId>,
    },
    /// End a session.
    Close {
        /// Which.
        session: SessionId,
    },
    /// Look.
    Read {
        /// At what.
        election: ElectionKey,
    },
}

/// What a store answered. `E` names an election.
#[derive(Clone, Debug)]
pub enum Answer<E = ElectionKey> {
    /// To [`Verb::Open`].
    Open(Opening),
    /// To [`Verb::Renew`].
    Renew(Renewal<E>),
    /// To [`Verb::Claim`].
    Claim(Standing),
    /// To [`Verb::Resign`].
    Resign,
    /// To [`Verb::Close`].
    Close,
    /// To [`Verb::Read`].
    Read(Record),
}

impl<E> Answer<E> {
    /// The same, with other names of the elections; what is told of those without a name is left out.
    pub fn rename<F>(self, name: impl FnMut(E) -> Option<F>) -> Answer<F> {
        match self {
            Self::Open(opening) => Answer::Open(opening),
            Self::Renew(renewal) => Answer::Renew(renewal.rename(name)),
            Self::Claim(standing) => Answer::Claim(standing),
            Self::Resign => Answer::Resign,
            Self::Close => Answer::Close,
            Self::Read(record) => Answer::Read(record),
        }
    }
}

/// Why there is no answer, as far as the machine cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing changed.
    Unavailable,
    /// It may have taken effect.
    Indeterminate,
    /// The session is over.
    SessionLost,
    /// Retrying cannot help.
    Misconfigured,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub serial: u64,
    pub sent: Instant,
    /// `None` while it waits for its turn: nobody is impatient with what was not sent.
    pub give_up: Option<Instant>,
}

impl Flight {
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.give_up.is_some_and(|at| at <= now)
    }
}

/// Something to ask about an election when its turn comes.
#[derive(Debug)]
pub(crate) struct InLine {
    pub key: ElectionKey,
    pub serial: u64,
    pub patience: Duration,
    pub verb: Verb,
}
