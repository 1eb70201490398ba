//! What a store tells about an election and about the sessions behind it.

use std::fmt;
use std::time::Duration;

use crate::name::NodeId;
use crate::term::Term;

/// One process life on one store. Everything that a node holds hangs from its session, and a
/// restarted process has another one, so it never inherits a lease by accident.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SessionId(u128);

impl SessionId {
    /// The session with this number.
    #[must_use]
    pub const fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// The number of this session.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({:x})", self.0 >> 96)
    }
}

impl std::str::FromStr for SessionId {
    type Err = std::num::ParseIntError;
    fn from_str(hex: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(hex, 16).map(Self)
    }
}

/// Which store answered. It changes when a store was replaced, restored, or failed over to
/// another history; everything believed before then is void.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StoreIdentity(pub u128);

impl StoreIdentity {
    /// The identity that all of these make together. One of them is random already, so this only has to
    /// keep different ones apart: FNV-1a.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let bytes = parts.iter().copied().flatten();
        Self(bytes.fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME)))
    }
}

impl fmt::Debug for StoreIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({:x})", self.0)
    }
}

/// Counts the renewals of a session: a higher number is proof of life.
pub type Sequence = u64;

/// Exactly the sign of life that a candidate saw. A take-over names it, and is refused if the
/// session has shown another one since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stamp {
    /// Whose life.
    pub session: SessionId,
    /// The renewal that was seen.
    pub sequence: Sequence,
}

/// A session's last sign of life, as read from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Pulse {
    /// The session and its last renewal.
    pub stamp: Stamp,
    /// How long the session lives without renewal, as its own node asked for it.
    pub ttl: Duration,
    /// How old the store says that this sign of life is.
    pub age: Age,
}

/// A store's word about the age of a pulse, taken in the statement that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Age {
    /// The store does not say.
    Unknown,
    /// Measured on the very clock that this candidate counts on, as between processes of one
    /// machine: exact.
    Exact(Duration),
    /// Measured on a clock of the store's own, which may have been stepped. Believed only as far
    /// as that clock has kept step with ours between two reads.
    Told {
        /// The age by the store's clock.
        age: Duration,
        /// What the store's clock showed when it said so, counted from any fixed origin.
        clock: Duration,
    },
}

/// Who leads, and the sign of life that its lease rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Holder {
    /// The node that leads.
    pub node: NodeId,
    /// The term that it was granted.
    pub term: Term,
    /// The last sign of life of the session that holds the lease.
    pub pulse: Pulse,
}

/// An election as the store has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// The highest term ever granted or reported here; [`Term::NONE`] if there was none.
    pub term: Term,
    /// Who holds the lease. `None`: never granted, resigned, or its session is over.
    pub holder: Option<Holder>,
    /// The term under which the election was last ended (deleted); [`Term::NONE`] if never.
    pub ended: Term,
    /// Somebody has asked the holder to give its term up.
    pub petition: Option<Petition>,
}

/// A request to a leader to give its term up. It binds nobody but the leader of that term.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Petition {
    /// The term to be given up.
    pub term: Term,
    /// For whom; `None`: for the first in the order of succession.
    pub to: Option<NodeId>,
}

/// Where a claim left its candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Standing {
    /// The lease is held by the claiming session under this term.
    Leading {
        /// The term of the grant.
        term: Term,
    },
    /// Nothing was granted to it: the candidate waits in line.
    Waiting {
        /// The election as it is now.
        seen: Record,
    },
}

/// What became of a request to open a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Opening {
    /// The session lives, for `ttl` counted from before the request.
    Opened {
        /// The life that the store granted; not always what was asked for.
        ttl: Duration,
    },
    /// Another session of the same node id is not known to be dead. Nothing changed.
    Occupied {
        /// Its last sign of life.
        pulse: Pulse,
    },
}

/// Of how many elections one renewal tells at most.
pub const MOST_TOLD: usize = 1_000;

/// What became of a renewal that found its session alive. `E` names an election.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Renewal<E> {
    /// The sequence that the store had before. Lower than one it confirmed earlier: the store
    /// was rolled back.
    pub previous: Sequence,
    /// How often others have left word for this session (an election of it was ended, say).
    /// When it rises, the node reads its elections again.
    pub notices: u64,
    /// How many terms were ever granted to this session. Fewer than it knows of: the store was rolled
    /// back, and has forgotten a lease that this node believes to hold.
    pub grants: u64,
    /// The elections in whose line the session stands, as they were right after the renewal: up to [`MOST_TOLD`]
    /// of them. A store may tell of fewer, or of none; of those the candidate asks itself.
    pub waits_for: Vec<(E, Record)>,
}

impl<E> Renewal<E> {
    /// The same, with other names of the elections; those without a name are left out.
    pub fn rename<F>(self, mut name: impl FnMut(E) -> Option<F>) -> Renewal<F> {
        let Self { previous, notices, grants, waits_for } = self;
        let waits_for =
            waits_for.into_iter().filter_map(|(election, seen)| Some((name(election)?, seen))).collect();
        Renewal { previous, notices, grants, waits_for }
    }
}

/// What the renewals of a session have told so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// The last one that was answered.
    pub sequence: Sequence,
    /// The last one that was answered after another had been applied without an answer. If that one found the
    /// store rolled back, it has covered the traces.
    pub unheard: Sequence,
    /// How often others have left word for the session.
    pub notices: u64,
}
