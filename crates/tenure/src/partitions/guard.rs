//! A partition that this node owns: the proof of it, for as long as it does.

use std::fmt;
use std::sync::Arc;

use tenure_core::partitions;
use tenure_core::{ElectionName, Reason, TaskListName, Term};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::error::NotOwner;
use crate::link::{Command, Link};
use crate::office::Office;

/// What the driver gives to whoever works on a task list.
pub(crate) struct Assigned {
    pub office: Arc<Office>,
    pub partition: partitions::Partition,
}

/// This node owns a partition, or has owned it. Clones are cheap, and all speak of the same time.
///
/// It stands for the work on the partition: **dropping the last clone says that the work has stopped**. Only then
/// can a partition that was revoked be given to another node. One that was not revoked stays with this node,
/// and nobody works on it, until it is.
#[derive(Clone)]
pub struct Partition {
    seat: Arc<Seat>,
}

struct Seat {
    office: Arc<Office>,
    link: Arc<Link>,
    list: TaskListName,
    partition: partitions::Partition,
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The work of a forked child is not the work that it was given for.
        if !self.office.forked() {
            self.link.tell(Command::PartitionStopped {
                election: self.office.election.clone(),
                partition: self.partition,
                id: self.office.id,
            });
            self.office.stopped();
        }
    }
}

impl Partition {
    pub(crate) fn new(assigned: Assigned, list: TaskListName, link: Arc<Link>) -> Self {
        let Assigned { office, partition } = assigned;
        Self { seat: Arc::new(Seat { office, link, list, partition }) }
    }

    /// Its number: from 0 to one less than the task list has.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.seat.partition.number
    }

    /// The task list that it is of.
    #[must_use]
    pub fn task_list(&self) -> &TaskListName {
        &self.seat.list
    }

    /// The election whose leader gave it to this node.
    #[must_use]
    pub fn election(&self) -> &ElectionName {
        &self.seat.office.election
    }

    /// The term, if this node owns the partition at this instant: no I/O, no lock, and right even if the thread
    /// that renews the session is starved, stopped or dead. Once it has failed it never succeeds again.
    ///
    /// # Errors
    /// [`NotOwner`] with the reason: `Asked` if the partition was revoked.
    pub fn check(&self) -> Result<Term, NotOwner> {
        self.seat.office.check().map_err(|lost| NotOwner { term: lost.term, reason: lost.reason })
    }

    /// The fencing token: higher than that of every owner before. Hand it to whatever you write to, and let that
    /// refuse lower ones.
    #[must_use]
    pub fn term(&self) -> Term {
        self.seat.office.term
    }

    /// Waits until the partition is to be given up, and says why.
    ///
    /// # Cancel safety
    /// Safe: dropping the future changes nothing.
    pub async fn revoked(&self) -> Reason {
        let office = &self.seat.office;
        office.lost().cancelled().await;
        office.reason().unwrap_or(Reason::Lapsed)
    }

    /// A token that is cancelled the moment the partition is to be given up.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.seat.office.lost().child_token()
    }

    /// This task works on it, and is aborted when its time to stop by itself is over.
    pub(crate) fn employ(&self, task: AbortHandle) {
        self.seat.office.employ(task);
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partition")
            .field("task_list", self.task_list())
            .field("number", &self.number())
            .field("check", &self.check())
            .finish()
    }
}
