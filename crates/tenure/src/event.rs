//! What happens to a node and in its elections, as the log and subscribers are told: in the names that the
//! history has.

use std::fmt;
use std::time::Duration;

use tenure_core::{ElectionName, Instant, NodeId, Reason, SessionId, TaskListName, Term};
use tenure_store::Problem;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Something that a node did or found. The store's history has what happened on all nodes; this is what
/// one of them knows, at once and without asking the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeEvent {
    /// This node has opened a session.
    NodeJoined {
        /// Which.
        session: SessionId,
    },
    /// This node has closed its session, and come to its end.
    NodeLeft,
    /// The health probe of this node's application fails: the node leads nothing and is no candidate.
    NodeUnhealthy {
        /// What is wrong.
        problem: Problem,
    },
    /// The health probe passes again.
    NodeHealthy,
    /// This node was elected.
    LeaderElected {
        /// For what.
        election: ElectionName,
        /// Under which term.
        term: Term,
    },
    /// This node leads no longer, and did not choose to.
    LeaderLost {
        /// What.
        election: ElectionName,
        /// The term that is over.
        term: Term,
        /// Why.
        reason: Reason,
    },
    /// This node gave its term up by itself. Its work had stopped before.
    LeaderResigned {
        /// Of what.
        election: ElectionName,
        /// The term that is over.
        term: Term,
        /// `Resigned`, or `WorkFailed` if its supervised work used up its budget.
        reason: Reason,
    },
    /// Another node, which led as far as this one knew, leads no longer. It resigned, or was lost: the
    /// history tells which.
    LeaderDown {
        /// What it led.
        election: ElectionName,
        /// Who.
        former: NodeId,
        /// Under which term.
        term: Term,
    },
    /// As far as this node knows, another leads than before, or nobody.
    LeaderChanged {
        /// What.
        election: ElectionName,
        /// Who led before.
        previous: Option<NodeId>,
        /// Who leads now.
        new: Option<NodeId>,
        /// Under which term; without a leader, the highest that this node has seen.
        term: Term,
    },
    /// This node has looked who leads, because it stands, observes, or wants to know whether it still does.
    ElectionCheck {
        /// At what.
        election: ElectionName,
        /// Who holds the lease.
        leader: Option<NodeId>,
        /// The highest term granted.
        term: Term,
    },
    /// The election was ended.
    ElectionDeleted {
        /// Which.
        election: ElectionName,
    },
    /// The session was renewed, and with it every lease under it.
    LeaseRenewed {
        /// Until when this node may act on it, on the boot clock of this machine.
        until: Instant,
    },
    /// Renewals fail.
    InJeopardy {
        /// How long until everything is lost, unless one succeeds.
        left: Duration,
    },
    /// A request was not answered: the store is away, as far as this node can tell. It asks again.
    StoreLost {
        /// Why, and what to do about it.
        problem: String,
    },
    /// A request was answered, for the first time since the store was lost.
    StoreBack {
        /// How long it was away.
        away: Duration,
    },
    /// This node coordinates, and has written to the ledger.
    PlanPublished {
        /// As the leader of what.
        election: ElectionName,
        /// Under which term.
        term: Term,
        /// The ledger's revision since.
        revision: u64,
    },
    /// All that was planned as a coordinator is done, as far as it can be. Only an
    /// [`observer`](crate::NodeBuilder::observer) is told.
    PlanCarriedOut {
        /// Whose work was divided.
        election: ElectionName,
        /// Since the plan's first publication.
        took: Duration,
    },
    /// This node was given a partition.
    PartitionAssigned {
        /// Of which task list.
        list: TaskListName,
        /// Which.
        partition: u32,
        /// Its fencing token.
        term: Term,
    },
    /// This node is to give up a partition, and has told its work to stop.
    PartitionRevoked {
        /// Of which task list.
        list: TaskListName,
        /// Which.
        partition: u32,
        /// Its fencing token.
        term: Term,
        /// Why; `Asked` if the coordinator wants it for another.
        reason: Reason,
    },
    /// The work on a partition that this node was given has stopped.
    PartitionReleased {
        /// Of which task list.
        list: TaskListName,
        /// Which.
        partition: u32,
        /// Its fencing token.
        term: Term,
        /// Whether it was to be given up. If not, it stays with this node, and nobody works on it.
        revoked: bool,
    },
    /// The store was asked for something. It happens all the time: only an
    /// [`observer`](crate::NodeBuilder::observer) is told.
    StoreAsked {
        /// For what: `open`, `renew`, `claim`, `resign`, `close` or `read`; where there are partitions, also
        /// `read_workers`, `read_partitions`, `assign_partitions` or `release_partitions`.
        verb: &'static str,
        /// How long the answer took, or how long it was waited for.
        took: Duration,
        /// Whether there was one.
        answered: bool,
    },
}

/// Told of every event on the driver's own thread.
pub(crate) type Observer = std::sync::Arc<dyn Fn(&NodeEvent) + Send + Sync>;

impl NodeEvent {
    /// Its name, the same as in logs and in the history.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NodeJoined { .. } => "node_joined",
            Self::NodeLeft => "node_left",
            Self::NodeUnhealthy { .. } => "node_unhealthy",
            Self::NodeHealthy => "node_healthy",
            Self::LeaderElected { .. } => "leader_elected",
            Self::LeaderLost { .. } => "leader_lost",
            Self::LeaderResigned { .. } => "leader_resigned",
            Self::LeaderDown { .. } => "leader_down",
            Self::LeaderChanged { .. } => "leader_changed",
            Self::ElectionCheck { .. } => "election_check",
            Self::ElectionDeleted { .. } => "election_deleted",
            Self::LeaseRenewed { .. } => "lease_renewed",
            Self::InJeopardy { .. } => "in_jeopardy",
            Self::StoreLost { .. } => "store_lost",
            Self::StoreBack { .. } => "store_back",
            Self::PlanPublished { .. } => "plan_published",
            Self::PlanCarriedOut { .. } => "plan_carried_out",
            Self::PartitionAssigned { .. } => "partition_assigned",
            Self::PartitionRevoked { .. } => "partition_revoked",
            Self::PartitionReleased { .. } => "partition_released",
            Self::StoreAsked { .. } => "store_asked",
        }
    }

    /// The election that it is about; none if it is about the node.
    #[must_use]
    pub const fn election(&self) -> Option<&ElectionName> {
        match self {
            Self::LeaderElected { election, .. }
            | Self::LeaderLost { election, .. }
            | Self::LeaderResigned { election, .. }
            | Self::LeaderDown { election, .. }
            | Self::LeaderChanged { election, .. }
            | Self::ElectionCheck { election, .. }
            | Self::PlanPublished { election, .. }
            | Self::PlanCarriedOut { election, .. }
            | Self::ElectionDeleted { election } => Some(election),
            Self::NodeJoined { .. }
            | Self::NodeLeft
            | Self::NodeUnhealthy { .. }
            | Self::NodeHealthy
            | Self::LeaseRenewed { .. }
            | Self::InJeopardy { .. }
            | Self::StoreLost { .. }
            | Self::StoreBack { .. }
            | Self::PartitionAssigned { .. }
            | Self::PartitionRevoked { .. }
            | Self::PartitionReleased { .. }
            | Self::StoreAsked { .. } => None,
        }
    }

    pub(crate) fn log(&self, node: &NodeId) {
        macro_rules! say {
            ($level:ident, $($field:tt)*) => { tracing::$level!(target: "tenure", %node, $($field)*) };
        }
        match self {
            Self::NodeJoined { session } => say!(info, %session, "node_joined"),
            Self::NodeLeft => say!(info, "node_left"),
            Self::NodeUnhealthy { problem } => say!(warn, %problem, "node_unhealthy"),
            Self::NodeHealthy => say!(info, "node_healthy"),
            Self::LeaderElected { election, term } => {
                say!(info, %election, term = term.number(), "leader_elected");
            }
            Self::LeaderLost { election, term, reason } => {
                say!(warn, %election, term = term.number(), reason = reason.name(), "leader_lost");
            }
            Self::LeaderResigned { election, term, reason } => {
                say!(info, %election, term = term.number(), reason = reason.name(), "leader_resigned");
            }
            Self::LeaderDown { election, former, term } => {
                say!(info, %election, %former, term = term.number(), "leader_down");
            }
            Self::LeaderChanged { election, previous, new, term } => {
                let (previous, new) =
                    (previous.as_ref().map(NodeId::as_str), new.as_ref().map(NodeId::as_str));
                say!(info, %election, term = term.number(), previous, new, "leader_changed");
            }
            Self::ElectionCheck { election, leader, term } => {
                let leader = leader.as_ref().map(NodeId::as_str);
                say!(debug, %election, term = term.number(), leader, "election_check");
            }
            Self::ElectionDeleted { election } => say!(info, %election, "election_deleted"),
            Self::LeaseRenewed { until } => say!(debug, ?until, "lease_renewed"),
            Self::InJeopardy { left } => say!(warn, ?left, "in_jeopardy"),
            Self::StoreLost { problem } => say!(warn, problem, "store_lost"),
            Self::StoreBack { away } => say!(info, ?away, "store_back"),
            Self::PlanPublished { election, term, revision } => {
                say!(info, %election, term = term.number(), revision, "plan_published");
            }
            Self::PlanCarriedOut { election, took } => say!(debug, %election, ?took, "plan_carried_out"),
            Self::PartitionAssigned { list, partition, term } => {
                say!(info, task_list = %list, partition, term = term.number(), "partition_assigned");
            }
            Self::PartitionRevoked { list, partition, term, reason } => {
                let (term, reason) = (term.number(), reason.name());
                say!(info, task_list = %list, partition, term, reason, "partition_revoked");
            }
            Self::PartitionReleased { list, partition, term, revoked } => {
                say!(info, task_list = %list, partition, term = term.number(), revoked, "partition_released");
            }
            Self::StoreAsked { verb, took, answered } => say!(trace, verb, ?took, answered, "store_asked"),
        }
    }
}

/// The events of a node, from the subscription on. It does not keep the node open.
pub struct Subscription {
    events: broadcast::Receiver<NodeEvent>,
    missed: u64,
}

impl Subscription {
    /// How many events are kept for a subscriber that lags.
    pub(crate) const KEPT: usize = 1024;

    pub(crate) const fn new(events: broadcast::Receiver<NodeEvent>) -> Self {
        Self { events, missed: 0 }
    }

    /// Waits for the next event. `None` once the node has come to its end.
    ///
    /// A subscriber that lags by more than 1024 events loses the oldest ones: [`missed`] counts them.
    ///
    /// # Cancel safety
    /// Safe: no event is lost.
    ///
    /// [`missed`]: Subscription::missed
    pub async fn next(&mut self) -> Option<NodeEvent> {
        loop {
            match self.events.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(events)) => self.missed += events,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// How many events were lost because this subscriber was too slow.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("missed", &self.missed).finish_non_exhaustive()
    }
}
