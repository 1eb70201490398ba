//! Partitions: work that is divided among nodes.
//!
//! A *task list* is cut into numbered partitions. The leader of an election, the *coordinator*, decides which node
//! owns which of them, and no partition ever has two owners. What it decides, and why, is in `docs/partitions.md`.

mod documents;
mod guard;
mod lists;
mod owners;
mod process;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tenure_core::{ElectionName, TaskListName};
use tokio::sync::mpsc;

pub use documents::TaskList;
pub(crate) use documents::Worker;
pub(crate) use guard::Assigned;
pub use guard::Partition;
pub use lists::TaskLists;
pub use owners::{Owner, PartitionState};

use crate::error::{ElectionError, PartitionsError};
use crate::leadership::Leadership;
use crate::link::{Command, Link};
use crate::node::Node;

/// The election whose leader divides the work, unless another is named.
const COORDINATOR: &str = "coordinator";

/// The partitions of one task list that this node is given, as they are given. Dropping it says that this node
/// works on the task list no longer: it is given no more, and what it has is revoked.
pub struct Partitions {
    link: Arc<Link>,
    election: ElectionName,
    list: TaskListName,
    assigned: mpsc::UnboundedReceiver<Assigned>,
}

impl Node {
    /// Works on a task list, as divided by the leader of the election `coordinator`. The task list may be made
    /// later.
    ///
    /// # Errors
    /// [`PartitionsError`] if the name is unusable, if the store keeps no ledger, or if this node works on the task
    /// list already.
    pub fn partitions(&self, list: impl AsRef<str>) -> Result<Partitions, PartitionsError> {
        self.partitions_of(COORDINATOR, list)
    }

    /// The same, as divided by the leader of another election.
    ///
    /// # Errors
    /// As for [`Node::partitions`].
    pub fn partitions_of(
        &self,
        election: impl AsRef<str>,
        list: impl AsRef<str>,
    ) -> Result<Partitions, PartitionsError> {
        let (election, list) = (ElectionName::new(election)?, TaskListName::new(list)?);
        let link = self.link();
        if link.store.ledger().is_none() {
            return Err(PartitionsError::NoLedger);
        }
        if !link.take_up(&election, &list) {
            return Err(PartitionsError::AlreadyWorking { list });
        }
        let (assign, assigned) = mpsc::unbounded_channel();
        link.tell(Command::Work { election: election.clone(), list: list.clone(), assign });
        Ok(Partitions { link: Arc::clone(link), election, list, assigned })
    }
}

impl Partitions {
    /// Waits for the next partition that this node is given. `None` once the node has come to its end.
    ///
    /// # Cancel safety
    /// Safe: no partition is lost.
    pub async fn next(&mut self) -> Option<Partition> {
        let assigned = self.assigned.recv().await?;
        Some(self.guard(assigned))
    }

    /// The task list.
    #[must_use]
    pub const fn task_list(&self) -> &TaskListName {
        &self.list
    }

    fn guard(&self, assigned: Assigned) -> Partition {
        Partition::new(assigned, self.list.clone(), Arc::clone(&self.link))
    }
}

impl Stream for Partitions {
    type Item = Partition;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Partition>> {
        let assigned = std::task::ready!(self.assigned.poll_recv(context));
        Poll::Ready(assigned.map(|assigned| self.guard(assigned)))
    }
}

impl Drop for Partitions {
    fn drop(&mut self) {
        // First nothing more is given, then nobody works on what was given and not taken.
        self.assigned.close();
        while let Ok(assigned) = self.assigned.try_recv() {
            drop(self.guard(assigned));
        }
        self.link.lay_down(&self.election, &self.list);
        self.link.tell(Command::Rest { election: self.election.clone(), list: self.list.clone() });
    }
}

impl fmt::Debug for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partitions").field("task_list", &self.list).finish_non_exhaustive()
    }
}

impl Leadership {
    /// Divides the work of this election's task lists among the nodes that work on them, for as long as this term
    /// lasts. It first loads the ledger and looks who is there, then plans, and carries the plan out.
    ///
    /// # Errors
    /// [`PartitionsError::NoLedger`] if the store keeps none.
    pub fn coordinate(&self) -> Result<(), PartitionsError> {
        let link = self.link();
        if link.store.ledger().is_none() {
            return Err(PartitionsError::NoLedger);
        }
        let lease = self.lease();
        link.tell(Command::Coordinate { election: lease.election, term: lease.term });
        Ok(())
    }
}

impl crate::Election {
    /// Stands, and [coordinates](Leadership::coordinate) whenever elected, until the node comes to its end.
    ///
    /// # Errors
    /// Why this node does not stand any more.
    ///
    /// # Cancel safety
    /// Dropping the future gives the lease back.
    pub async fn coordinate(&self) -> Result<(), PartitionsError> {
        let coordinated = self.lead(async |leadership: Leadership| {
            leadership.coordinate()?;
            leadership.lost().await;
            Ok::<_, PartitionsError>(())
        });
        match coordinated.await {
            Ok(()) => Ok(()),
            Err(crate::LeadError::Work(error)) => Err(error),
            Err(crate::LeadError::Election(error)) => Err(PartitionsError::Election(error)),
            Err(crate::LeadError::CutOff) => Err(PartitionsError::Election(ElectionError::StillStopping)),
        }
    }
}
