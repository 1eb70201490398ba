use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use futures_core::Stream;
use tenure_core::{
    Capabilities, ElectionName, NodeId, NodeState, Opening, Pulse, Record, Renewal, Sequence, SessionId,
    Stamp, Standing, StoreIdentity, Term,
};

use crate::cause::Cause;
use crate::error::StoreError;
use crate::health::{HealthReport, Unhealthy};
use crate::history::{EventQuery, EventRecord};
use crate::labels::Labels;
use crate::ledger::Ledger;

/// An answer on its way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An answer, with the identity of the store at the moment that it gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<T> {
    /// Which store answered: read in the same transaction as the answer.
    pub store: StoreIdentity,
    /// What it answered.
    pub value: T,
}

/// An answer or the reason why there is none.
pub type Reply<T> = Result<Told<T>, StoreError>;

/// Asks for a session.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Open {
    /// Chosen by the node, unique to this process life.
    pub session: SessionId,
    /// Rises with every attempt, so that a repeated request is a sign of life like a renewal.
    pub sequence: Sequence,
    /// How long the session shall live without renewal.
    pub ttl: Duration,
    /// Who opens it.
    pub node: NodeInfo,
    /// An earlier session of this very process. It is over: whatever it held is free.
    pub supersedes: Option<SessionId>,
    /// A session of the same node id that has been silent for its whole life. Retired if it
    /// still has exactly this pulse.
    pub over: Option<Stamp>,
}

/// What a node tells about itself when it registers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NodeInfo {
    /// Its id, unique among the live nodes of the namespace.
    pub id: NodeId,
    /// The machine that it runs on.
    pub hostname: String,
    /// Where its API is reached, if it has one.
    pub address: Option<String>,
    /// Its process id on that machine.
    pub pid: u32,
    /// The version of Tenure that it runs.
    pub version: String,
    /// What its operator says of it.
    pub labels: Labels,
}

impl NodeInfo {
    /// What this very process tells, without an address or labels.
    #[must_use]
    pub fn new(id: NodeId, hostname: impl Into<String>) -> Self {
        Self {
            id,
            hostname: hostname.into(),
            address: None,
            pid: std::process::id(),
            version: String::from(env!("CARGO_PKG_VERSION")),
            labels: Labels::default(),
        }
    }
}

/// Asks for the lease of an election, or where we stand.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Claim {
    /// Under which session.
    pub session: SessionId,
    /// For which election.
    pub election: ElectionName,
    /// Rises with every claim and resignation of the session. A claim that arrives after a
    /// resignation with a higher number is void: it was overtaken.
    pub attempt: u64,
    /// Higher stands first.
    pub priority: i32,
    /// Retire this session first, if it still has exactly this pulse: it was silent for its
    /// whole life.
    pub over: Option<Stamp>,
    /// Only tells the store of [`Claim::above`], which it has forgotten: nothing is granted, nobody is retired, and
    /// the candidate is not put in line. Sent while the store's history is in doubt.
    pub tell_only: bool,
    /// The highest term that this node has seen. The granted term is above it, and the store
    /// remembers it even if the claim is refused (unless it is void, or its election was ended).
    pub above: Term,
    /// The term of the election when this candidate first saw it. If the election was ended
    /// under a later term, the claim is refused. `None`: it has not seen it yet.
    pub since: Option<Term>,
}

impl Claim {
    /// A claim of priority 0 that retires nobody, and has seen nothing.
    #[must_use]
    pub const fn plain(session: SessionId, election: ElectionName, attempt: u64) -> Self {
        Self {
            session,
            election,
            attempt,
            priority: 0,
            over: None,
            tell_only: false,
            above: Term::NONE,
            since: None,
        }
    }
}

/// Gives up a lease, a place in line, or a claim whose outcome is unknown.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Resign {
    /// Under which session.
    pub session: SessionId,
    /// Of which election.
    pub election: ElectionName,
    /// Voids every claim of this session with a lower number that has not arrived yet. In turn, a
    /// claim with a higher number voids this: a resignation that arrives after its session was
    /// told that it leads again frees nothing.
    pub attempt: u64,
    /// Frees only this term. `None`: whatever this session holds of the election.
    pub term: Option<Term>,
    /// Grants the lease to this candidate, if it stands.
    pub to: Option<NodeId>,
    /// Why: recorded in the history, and no more than that.
    pub cause: Cause,
}

/// A lease as its holder knows it: what a fenced transaction checks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lease {
    /// The session that holds it.
    pub session: SessionId,
    /// The election.
    pub election: ElectionName,
    /// The term of the grant.
    pub term: Term,
}

/// What became of a request to end an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Deletion {
    /// Ended. Its candidates are told; its term lives on.
    Ended,
    /// Somebody leads, and the request did not insist. Nothing changed.
    Led,
    /// There is no such election, or it was ended before. Nothing changed.
    Absent,
}

/// What became of a request to a leader to give its term up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Petitioned {
    /// It is on record, and the leader is told. It resigns by itself, once its work has stopped.
    Noted {
        /// Who leads.
        leader: NodeId,
        /// The term that it is asked to give up.
        term: Term,
    },
    /// Nobody leads. Nothing changed.
    NobodyLeads,
    /// The named successor does not stand. Nothing changed.
    NotStanding,
}

/// A candidate as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Candidate {
    /// The node that stands.
    pub node: NodeId,
    /// Its priority.
    pub priority: i32,
}

/// A registered process as the store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NodeRecord {
    /// What it told about itself.
    pub info: NodeInfo,
    /// Whether its session is live.
    pub state: NodeState,
    /// The last sign of life of its session. While that is live, others time its silence by it.
    pub pulse: Pulse,
    /// When it registered, by the wall clock of its writer: for people to read.
    pub opened_at: SystemTime,
    /// When it last renewed, by the wall clock of its writer: for people to read.
    pub renewed_at: SystemTime,
    /// Why it may not lead, if its health probe fails. Nobody but its own process decides by it.
    pub unhealthy: Option<Unhealthy>,
}

impl NodeRecord {
    /// Its session.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.pulse.stamp.session
    }
}

/// What the leader of an election finds of the whole cluster: whether fewer nodes live than it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Declaration {
    /// By which right it speaks.
    pub lease: Lease,
    /// Whether they are too few.
    pub degraded: bool,
    /// How many nodes live.
    pub live: u32,
    /// How many are needed.
    pub minimum: u32,
}

/// Something about a store that an operator wants to know before relying on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at, in a word or two.
    pub name: &'static str,
    /// Whether it is as it should be.
    pub fine: bool,
    /// How it is.
    pub value: String,
    /// What to do about it, or what follows from it.
    pub advice: Option<String>,
}

impl Finding {
    /// As it should be; or else what to do.
    #[must_use]
    pub fn new(name: &'static str, fine: bool, value: String, advice: &str) -> Self {
        Self { name, fine, value, advice: (!fine).then(|| advice.to_owned()) }
    }
}

/// Word that something may have changed. It carries no truth: whoever hears it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Hint {
    /// Something about this election.
    Election(ElectionName),
    /// Something about this election that concerns only this node: it was granted the lease, or is asked to give
    /// it up. Nobody else needs to ask now: the others learn of a new leader with their next renewal.
    Named {
        /// The election.
        election: ElectionName,
        /// The node.
        node: NodeId,
    },
    /// A node has come or gone.
    Nodes,
    /// Anything: hints may have been lost.
    All,
}

impl Hint {
    /// The election that it is about.
    #[must_use]
    pub const fn election(&self) -> Option<&ElectionName> {
        match self {
            Self::Election(election) | Self::Named { election, .. } => Some(election),
            Self::Nodes | Self::All => None,
        }
    }
}

/// Hints as they come. The stream ends only when the store can give no more.
pub type Hints = Pin<Box<dyn Stream<Item = Hint> + Send>>;

/// A place that keeps sessions and leases for one namespace, with linearizable and durable
/// compare-and-set.
///
/// Every verb is idempotent: after [`StoreError::Indeterminate`] the same request may be sent
/// again, and a request that arrives twice, late, or out of order does no harm. Dropping a
/// future leaves its request in an unknown state, and the store usable.
pub trait Store: Send + Sync + 'static {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// Opens a session and registers its node, in one write.
    ///
    /// Repeating it for a live session, with a higher sequence, counts as a renewal. `Occupied` if another live session
    /// has the same node id and is neither superseded nor retired by this request.
    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>>;

    /// Keeps everything under a session, in one write however much that is.
    ///
    /// Sets the sequence to `sequence` if that is higher; every attempt has a higher one, since
    /// rivals compare it. Never answered from a cache.
    /// `attempt` counts from 1 within one renewal; from the second on, a store with connections
    /// uses a fresh one. [`StoreError::SessionLost`] if the session is closed, retired, or
    /// unknown.
    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>>;

    /// Stands for an election, or asks again where we stand.
    ///
    /// Granted if the lease is free (never granted, resigned, or its session is over), or if `over` retires its
    /// holder: unless a candidate of higher priority is in line that was renewed within half of its ttl, by the
    /// store's own clock. To that one it is granted by the same write. Whoever is not granted the lease is put in line.
    /// Holding the lease already answers `Leading` with the same term: nothing changes. The granted term is above
    /// every term granted before and above [`Claim::above`]. [`StoreError::SessionLost`] as for [`Store::renew`].
    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>>;

    /// Frees the lease if this session holds it under that term, withdraws the candidate, and
    /// voids earlier claims of it that have not arrived. The term stays.
    ///
    /// The write that frees the lease grants the next term to the named candidate if it stands, or else to the first
    /// by priority and then by arrival. A candidate that was not renewed within half of its ttl, by the store's own
    /// clock, is passed over, unless it is named; without any other the lease is free. The successor learns of its
    /// grant by [`Hint::Named`] and a read, and from [`Renewal::grants`].
    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>>;

    /// Closes a session: everything under it is free at once, or granted to others as by [`Store::resign`]. A store may
    /// limit how many leases it grants in one write. Unknown and closed sessions are no error. The cause is recorded
    /// in the history of every election that it led, and of its node.
    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>>;

    /// The election as it is now; a default [`Record`] if nobody ever stood.
    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>>;

    /// Ends an election. Its holder and candidates are told, and stop by themselves; the lease is
    /// free once its holder has resigned it or lapsed, never before. With `force` also while
    /// somebody leads.
    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>>;

    /// Asks the leader to give its term up: for `to`, or for the first in the order of succession, to which its
    /// resignation then grants the lease. Asking again changes nothing, except for whom.
    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>>;

    /// Who stands, in order of succession, the holder not included.
    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>>;

    /// All elections that were ever stood for, with their records, by name.
    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>>;

    /// All registered nodes, by id.
    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>>;

    /// Retires a session that has been silent for its whole life, whether or not it holds anything: if it
    /// still has exactly this pulse. Whether it did. Where the store judges by itself, never.
    fn retire(&self, over: Stamp) -> Pending<'_, Reply<bool>>;

    /// Forgets nodes that are no more, and whose last sign of life is older than that, by the wall clock
    /// of its writer; how many. What is live stays, however old.
    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>>;

    /// Notes in the election's history that the cluster is below its minimum, or no longer
    /// ([`EventKind::ClusterDegraded`](crate::EventKind), [`EventKind::ClusterRecovered`](crate::EventKind)).
    /// Whether that was news: if the store has it so already, or the lease is not held any more, nothing
    /// changes.
    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>>;

    /// Notes in the node's record, and in the history, that its health probe fails, or passes again
    /// ([`EventKind::NodeUnhealthy`](crate::EventKind), [`EventKind::NodeHealthy`](crate::EventKind)). A new session
    /// is healthy.
    ///
    /// Whether the health of the node has changed by it: only then is an event recorded. Another problem of a node
    /// that is unhealthy already is shown in its record, and a report that was overtaken by a later one changes
    /// nothing. It waits for nothing that the renewal of the session needs. [`StoreError::SessionLost`] as for
    /// [`Store::renew`].
    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>>;

    /// The history, oldest first.
    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>>;

    /// What an operator should know of this store: where it is, how durable, how it tells its news.
    /// Looked up now, and nothing is changed.
    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>>;

    /// Hints from now on, for all elections of the namespace, and for its nodes.
    fn news(&self) -> Hints;

    /// The ledger of partitions, if this store keeps one.
    fn ledger(&self) -> Option<&dyn Ledger> {
        None
    }

    /// The store itself, for what only one kind of store offers.
    fn as_any(&self) -> &dyn Any;
}
