//! What every handle of a node shares, and the words in which handles speak to the driver.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use tenure_core::partitions::Partition;
use tenure_core::{Drift, ElectionName, NodeId, Record, TaskListName, Term};
use tenure_store::{Candidate, Deletion, Store, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::election::{Contest, LeaderChange};
use crate::error::{ElectionError, Ending};
use crate::event::{NodeEvent, Subscription};
use crate::gate::Doorplate;
use crate::held::Held;
use crate::office::{Office, lock};
use crate::partitions::Assigned;

/// A handle's line to the driver. When the last one is gone, the driver closes the session.
pub(crate) struct Link {
    pub node: NodeId,
    pub store: Arc<dyn Store>,
    pub status: Arc<Status>,
    /// By how much clock rates may differ, as this node was told.
    pub drift: Drift,
    commands: mpsc::UnboundedSender<Command>,
    candidacies: AtomicU64,
    /// What the handles of each election share, as long as there are any.
    contests: Mutex<HashMap<ElectionName, Weak<Contest>>>,
    /// The task lists that this node works on, each for one handle.
    worked: Mutex<HashSet<(ElectionName, TaskListName)>>,
}

/// What the driver tells all handles at once.
pub(crate) struct Status {
    /// `None` once the driver has come to its end.
    pub held: watch::Sender<Option<Held>>,
    pub ending: OnceLock<Ending>,
    /// What happens, for subscribers. `None` once the driver has come to its end.
    events: Mutex<Option<broadcast::Sender<NodeEvent>>>,
}

impl Default for Status {
    fn default() -> Self {
        let events = Mutex::new(Some(broadcast::Sender::new(Subscription::KEPT)));
        Self { held: watch::Sender::new(Some(Held::default())), ending: OnceLock::new(), events }
    }
}

impl Status {
    pub(crate) fn ending(&self) -> Ending {
        self.ending.get().cloned().unwrap_or(Ending::Closed)
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        let events = lock(&self.events);
        // At the node's end there is nothing to come: a channel without a sender says so.
        Subscription::new(
            events.as_ref().map_or_else(|| broadcast::channel(1).1, broadcast::Sender::subscribe),
        )
    }

    pub(crate) fn has_subscribers(&self) -> bool {
        lock(&self.events).as_ref().is_some_and(|events| events.receiver_count() > 0)
    }

    /// Nobody may be listening, which is no loss.
    pub(crate) fn publish(&self, event: NodeEvent) {
        if let Some(events) = &*lock(&self.events) {
            let _ = events.send(event);
        }
    }

    /// Nothing happens any more.
    pub(crate) fn fall_silent(&self) {
        lock(&self.events).take();
    }
}

/// Answers that need the store.
pub(crate) type Answered<T> = oneshot::Sender<Result<T, StoreError>>;

/// What a handle asks of the driver. `id` is the candidacy, and the office that it won.
pub(crate) enum Command {
    /// A handle for this election exists: what is known of it is kept.
    Hold(ElectionName),
    /// One handle less.
    Release(ElectionName),
    Stand {
        election: ElectionName,
        id: u64,
        granted: oneshot::Sender<Result<Arc<Office>, ElectionError>>,
    },
    /// Nobody waits for this candidacy any more, granted or not.
    Withdraw {
        election: ElectionName,
        id: u64,
    },
    /// The guard is closed: give the lease back, once the work has stopped.
    Resign {
        election: ElectionName,
        id: u64,
        to: Option<NodeId>,
    },
    /// The work has stopped.
    Stopped {
        election: ElectionName,
        id: u64,
    },
    /// Tell when the lease is given back.
    Released {
        election: ElectionName,
        id: u64,
        done: oneshot::Sender<()>,
    },
    Observe {
        election: ElectionName,
        changes: watch::Sender<Option<LeaderChange>>,
    },
    /// An observer is gone.
    Unobserve(ElectionName),
    /// Keep this doorplate told of who leads, and where.
    OpenGate {
        election: ElectionName,
        doorplate: Arc<Doorplate>,
    },
    /// One gate less.
    CloseGate(ElectionName),
    Read(ElectionName, Answered<Record>),
    Candidates(ElectionName, Answered<Vec<Candidate>>),
    Delete {
        election: ElectionName,
        force: bool,
        answer: Answered<Deletion>,
    },
    /// This node works on a task list.
    Work {
        election: ElectionName,
        list: TaskListName,
        assign: mpsc::UnboundedSender<Assigned>,
    },
    /// It does so no longer.
    Rest {
        election: ElectionName,
        list: TaskListName,
    },
    /// The work on a partition has stopped.
    PartitionStopped {
        election: ElectionName,
        partition: Partition,
        id: u64,
    },
    /// Whoever leads under this term divides the work, as long as it does.
    Coordinate {
        election: ElectionName,
        term: Term,
    },
    Close(oneshot::Sender<()>),
}

impl Link {
    pub(crate) fn new(
        node: NodeId,
        store: Arc<dyn Store>,
        status: Arc<Status>,
        drift: Drift,
        commands: mpsc::UnboundedSender<Command>,
    ) -> Self {
        let (candidacies, contests, worked) = (AtomicU64::new(0), Mutex::default(), Mutex::default());
        Self { node, store, status, drift, commands, candidacies, contests, worked }
    }

    /// Takes up the work on a task list; false if somebody has.
    pub(crate) fn take_up(&self, election: &ElectionName, list: &TaskListName) -> bool {
        lock(&self.worked).insert((election.clone(), list.clone()))
    }

    pub(crate) fn lay_down(&self, election: &ElectionName, list: &TaskListName) {
        lock(&self.worked).remove(&(election.clone(), list.clone()));
    }

    /// What all handles of this election share.
    pub(crate) fn contest(self: &Arc<Self>, name: ElectionName) -> Arc<Contest> {
        let mut contests = lock(&self.contests);
        if let Some(contest) = contests.get(&name).and_then(Weak::upgrade) {
            return contest;
        }
        let contest = Arc::new(Contest::new(name.clone(), Arc::clone(self)));
        contests.insert(name, Arc::downgrade(&contest));
        contest
    }

    /// The last handle is gone, unless another was made meanwhile.
    pub(crate) fn forget(&self, name: &ElectionName) {
        let mut contests = lock(&self.contests);
        if contests.get(name).is_some_and(|contest| contest.strong_count() == 0) {
            contests.remove(name);
        }
    }

    pub(crate) fn candidacy(&self) -> u64 {
        self.candidacies.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Never blocks, and is harmless when there is no driver any more.
    pub(crate) fn tell(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    /// Sends what `command` makes of the answer's sender, and waits. The error says why there is
    /// no driver to answer.
    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Ending> {
        let (sender, answer) = oneshot::channel();
        self.tell(command(sender));
        answer.await.map_err(|_| self.status.ending())
    }
}
