//! The ledger: who owns which partition, as a store keeps it.
//!
//! A ledger belongs to an election, whose leader is the coordinator. The rules are those of
//! [`tenure_core::partitions`]; here they are verbs. What nodes and people say of themselves and of their work
//! is kept beside the entries as text that no store looks into.

use tenure_core::partitions::{Change, Page, Partition, Revision};
use tenure_core::{ElectionName, NodeId, Pulse, SessionId, Stamp, TaskListName};

use crate::contract::{Lease, Pending, Reply};

/// So many entries are told at a time; more where entries of one revision would be torn apart, or where a store
/// has to read all of them anyway.
pub const LEDGER_PAGE: usize = 1000;

/// A node that works, or has worked, on partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WorkerRecord {
    /// Who.
    pub node: NodeId,
    /// Under which session.
    pub session: SessionId,
    /// The session's last sign of life; `None`: it is over.
    pub pulse: Option<Pulse>,
    /// What it said of itself when it enlisted.
    pub document: String,
}

/// Who works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Survey {
    /// The ledger's revision.
    pub revision: Revision,
    /// Every live session that has enlisted, and every one that is over and that the ledger names.
    pub workers: Vec<WorkerRecord>,
}

/// Which part of a ledger to read.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LedgerQuery {
    /// Whose ledger.
    pub election: ElectionName,
    /// Only what has changed after this revision.
    pub since: Revision,
    /// Only entries that name this session.
    pub of: Option<SessionId>,
}

/// A task list, as it was arranged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Listed {
    /// What people call it.
    pub name: TaskListName,
    /// What entries call it: [`Partition::list`]. It is never another one's, not even after it was dropped.
    pub number: u32,
    /// When it last changed.
    pub revision: Revision,
    /// What was arranged; `None`: it was dropped.
    pub document: Option<String>,
}

/// A part of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Leaf {
    /// Its entries.
    pub page: Page,
    /// The task lists that have changed since, by number, whatever the page's length.
    pub lists: Vec<Listed>,
}

/// What a coordinator writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Publication {
    /// By which right.
    pub lease: Lease,
    /// The revision of the last publication that the coordinator knows of.
    pub after: Revision,
    /// Sessions that were silent for their whole life. Retired if they still have exactly this pulse.
    pub retire: Vec<Stamp>,
    /// What is written after that. Each partition is named once.
    pub changes: Vec<Change>,
}

/// What became of a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Published {
    /// It was written, except for what was not as the coordinator had seen it.
    Written {
        /// The ledger's revision: that of everything changed here, if anything was.
        revision: Revision,
        /// What was not changed.
        refused: Vec<Partition>,
    },
    /// The lease is not held any more. Nothing changed.
    TermOver,
    /// Something else was published since. Nothing changed.
    Overtaken,
}

/// A worker has stopped its work on partitions that were revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Release {
    /// In whose ledger.
    pub election: ElectionName,
    /// Under which session.
    pub session: SessionId,
    /// Which, with the revision of their revocation.
    pub released: Vec<(Partition, Revision)>,
}

/// A node says that it works.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Enlistment {
    /// For whom.
    pub election: ElectionName,
    /// Under which session.
    pub session: SessionId,
    /// What the coordinator shall know of it.
    pub document: String,
}

/// Somebody says what work there is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Arrangement {
    /// In whose ledger.
    pub election: ElectionName,
    /// The task list.
    pub list: TaskListName,
    /// Its revision, as it was seen; 0 if there was none.
    pub seen: Revision,
    /// What is arranged; `None`: it is dropped.
    pub document: Option<String>,
}

/// What became of an arrangement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Arranged {
    /// It is in force.
    Written {
        /// The number of the task list.
        number: u32,
        /// When it last changed.
        revision: Revision,
    },
    /// Somebody else has changed the task list since it was seen. Nothing changed.
    Overtaken,
}

/// The ledgers of a namespace. Each verb is one transaction, and idempotent like those of
/// [`Store`](crate::Store).
///
/// Whatever changes gets the ledger's next revision. A session that is given something, asked for something, or
/// has released something, has its `notices` counted up in the same transaction.
pub trait Ledger: Send + Sync {
    /// Who works.
    fn survey(&self, election: ElectionName) -> Pending<'_, Reply<Survey>>;

    /// What has changed: entries in the order of their revisions, about [`LEDGER_PAGE`] of them at a time.
    fn leaf(&self, query: LedgerQuery) -> Pending<'_, Reply<Leaf>>;

    /// The coordinator writes.
    ///
    /// Refused whole unless the lease is held, and unless nothing was published since. A change alone is refused
    /// unless its entry has the revision that was seen; [`Change::Assign`] also unless the owner's session is over
    /// and the new one's is live and has enlisted; [`Change::Revoke`] unless there is a live owner.
    /// [`StoreError::SessionLost`](crate::StoreError) if the coordinator's session is over.
    fn publish(&self, publication: Publication) -> Pending<'_, Reply<Published>>;

    /// Makes vacant what is being revoked from this session at exactly the revisions that it names, and nothing
    /// else. How often word was left for the session, this included.
    /// [`StoreError::SessionLost`](crate::StoreError) if the session is over.
    fn acknowledge(&self, release: Release) -> Pending<'_, Reply<u64>>;

    /// Offers a session to the coordinator; the last word counts.
    /// [`StoreError::SessionLost`](crate::StoreError) if the session is over.
    fn enlist(&self, enlistment: Enlistment) -> Pending<'_, Reply<()>>;

    /// Arranges a task list, or drops it. What is so already is no change.
    fn arrange(&self, arrangement: Arrangement) -> Pending<'_, Reply<Arranged>>;
}
