use std::fmt;
use std::time::SystemTime;

use tenure_core::{ElectionName, NodeId, Term};

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// What happened. The names are the same in the history, in logs, and over HTTP.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
        #[non_exhaustive]
        pub enum EventKind { $($(#[$doc])* $variant),+ }

        impl EventKind {
            /// The name that users see.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The kind of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

kinds! {
    /// Somebody stood for an election that nobody had stood for (since it was ended).
    ElectionStarted = "election_started",
    /// A term was granted.
    LeaderElected = "leader_elected",
    /// A leader has lost its term; `reason` in the data. `lapsed` or `superseded`: its session is over. That is
    /// recorded by its successor, with `silent_ms` since the last renewal, its `ttl_ms`, and `reopened` if the same
    /// process has opened another session. `program_failed`: the program that it ran ended with this `exit_code` or
    /// `signal`. `process_ended`: its process is gone, `witnessed` by another on the same machine.
    LeaderLost = "leader_lost",
    /// A leader gave its term up; `exit_code` 0 in the data if the program that it ran has succeeded.
    LeaderResigned = "leader_resigned",
    /// Another node leads than before; `previous` and `new` in the data.
    LeaderChanged = "leader_changed",
    /// The leader was asked to hand over, from outside or by its own program; `to` in the data if to
    /// a named candidate.
    TransferRequested = "transfer_requested",
    /// The election was ended.
    ElectionDeleted = "election_deleted",
    /// A node registered.
    NodeJoined = "node_joined",
    /// A node closed its session, or another process did so for it; the data of the cause.
    NodeLeft = "node_left",
    /// A node was silent for its whole life, and was retired.
    NodeExpired = "node_expired",
    /// The health probe of a node fails: it leads nothing and is no candidate. `problem` in the data.
    NodeUnhealthy = "node_unhealthy",
    /// The health probe of a node passes again.
    NodeHealthy = "node_healthy",
    /// Fewer nodes live than the cluster needs; `live` and `minimum` in the data.
    ClusterDegraded = "cluster_degraded",
    /// As many nodes live again as the cluster needs.
    ClusterRecovered = "cluster_recovered",
    /// The coordinator has written to the ledger; `revision`, and how many partitions were `assigned` and
    /// `revoked`, in the data.
    PlanPublished = "plan_published",
    /// With that plan, partitions were given to nodes: `to` in the data names them, by node and task list.
    PartitionAssigned = "partition_assigned",
    /// With that plan, nodes were asked to give partitions up: `from` in the data names them, by node and task
    /// list.
    PartitionRevoked = "partition_revoked",
    /// A node has stopped its work on partitions that were revoked; how many were `released`, in the data.
    PartitionReleased = "partition_released",
}

impl From<EventKind> for String {
    fn from(kind: EventKind) -> Self {
        kind.name().to_owned()
    }
}

impl TryFrom<String> for EventKind {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        Self::from_name(&name).ok_or_else(|| format!("no event is called `{name}`"))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A line of history, recorded in the transaction of what it tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EventRecord {
    /// Rises over the whole store.
    pub id: u64,
    /// Counts 1, 2, 3, … within the election, without a gap. 0 for events of nodes.
    pub sequence: u64,
    /// When, by the wall clock of the writer: for people to read.
    pub time: SystemTime,
    /// What happened.
    pub kind: EventKind,
    /// In which election; none for events of nodes.
    pub election: Option<ElectionName>,
    /// To which node, if to one.
    pub node: Option<NodeId>,
    /// Under which term; [`Term::NONE`] for events of nodes.
    pub term: Term,
    /// More about it, as a JSON object.
    pub data: String,
}

/// Which part of the history to read.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EventQuery {
    /// Only of this election.
    pub election: Option<ElectionName>,
    /// Only with a higher id.
    pub after: u64,
    /// At most so many; all if `None`.
    pub limit: Option<Limit>,
}

/// How many events to read, and from which end. They come oldest first all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Limit {
    /// The oldest so many.
    Oldest(u32),
    /// The newest so many.
    Newest(u32),
}

impl Limit {
    /// How many.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::Oldest(count) | Self::Newest(count) => count,
        }
    }
}

/// How much history is kept per election (and for the nodes together).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Retention {
    /// The newest so many events; never less than the last transition.
    pub events: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { events: 10_000 }
    }
}
