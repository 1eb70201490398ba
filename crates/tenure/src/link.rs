//! What every handle of a node shares, and the words in which handles speak to the driver.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tenure_core::{ElectionName, NodeId, Record};
use tenure_store::{Candidate, Deletion, Store, StoreError};
use tokio::sync::{mpsc, oneshot, watch};

use crate::election::LeaderChange;
use crate::error::{ElectionError, Ending};
use crate::held::Held;
use crate::office::Office;

/// A handle's line to the driver. When the last one is gone, the driver closes the session.
pub(crate) struct Link {
    pub node: NodeId,
    pub store: Arc<dyn Store>,
    pub status: Arc<Status>,
    commands: mpsc::UnboundedSender<Command>,
    candidacies: AtomicU64,
}

/// What the driver tells all handles at once.
pub(crate) struct Status {
    /// `None` once the driver has come to its end.
    pub held: watch::Sender<Option<Held>>,
    pub ending: OnceLock<Ending>,
}

impl Default for Status {
    fn default() -> Self {
        Self { held: watch::Sender::new(Some(Held::default())), ending: OnceLock::new() }
    }
}

impl Status {
    pub(crate) fn ending(&self) -> Ending {
        self.ending.get().cloned().unwrap_or(Ending::Closed)
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
    /// The guard is closed: give the lease back, at once if the work has stopped.
    Resign {
        election: ElectionName,
        id: u64,
        to: Option<NodeId>,
        stopped: bool,
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
    Read(ElectionName, Answered<Record>),
    Candidates(ElectionName, Answered<Vec<Candidate>>),
    Delete {
        election: ElectionName,
        force: bool,
        answer: Answered<Deletion>,
    },
    Close(oneshot::Sender<()>),
}

impl Link {
    pub(crate) fn new(
        node: NodeId,
        store: Arc<dyn Store>,
        status: Arc<Status>,
        commands: mpsc::UnboundedSender<Command>,
    ) -> Self {
        Self { node, store, status, commands, candidacies: AtomicU64::new(0) }
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
