//! The ledger: who owns what, as the store keeps it, and what is asked of a store that keeps one.
//!
//! A ledger belongs to an election; its leader is the coordinator. It is made of small entries, one per
//! partition that was ever assigned, and one counter, the revision, which rises with every change. A store keeps
//! entries as rows, or some hundreds of them in a document: nothing here needs more than a batch of
//! them in one transaction.
//!
//! Ownership hangs from the session. An entry names the session that owns the partition, and as long as that
//! session is live nothing is written about it. When the session is over, so is everything that it owned:
//! the entry stays as it is, and is worth as much as a vacant one.
//!
//! **What a store must see to**, each in one transaction:
//!
//! - [`Demand::Publish`] is refused whole unless the session that asks is live and leads the election under exactly
//!   this term. So an old coordinator can change nothing, however late it wakes up. It is refused whole, too, if
//!   anything was published since the publication that it names. So one that was given up and arrives late
//!   changes nothing either.
//! - A [`Change`] is refused, it alone, unless the entry still has the revision that the coordinator saw.
//! - [`Change::Assign`] is refused unless the entry is vacant or its owner's session is over, and unless the
//!   session that gets it is live.
//! - [`Demand::Acknowledge`] makes vacant only what the session that asks owns, being revoked, at exactly the
//!   revision that it names. An acknowledgement that comes late finds a higher one, and does nothing.
//! - Whatever changes gets the next revision. What a session is given, asked for, or has released counts up its
//!   `notices`. So it learns of it at its next renewal even if no hint reaches it; and if the store is silently put
//!   back to before it, the next renewal tells.

use crate::name::NodeId;
use crate::record::{Pulse, SessionId, Stamp};
use crate::term::Term;

use super::assignment::Partition;
use super::member::Member;

/// Counts the changes of a ledger; 0 is before the first. The revision at which a partition was assigned is
/// its fencing token: it is higher than that of every owner before.
pub type Revision = u64;

/// At most so many changes make a publication, and so many releases an acknowledgement: they fit into one
/// transaction of every store.
pub const BATCH: usize = 200;

/// Who owns a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Holding {
    /// Nobody.
    #[default]
    Vacant,
    /// This session, as long as it is live.
    Owned(SessionId),
    /// This session, as long as it is live; it was asked to give the partition up.
    Revoking(SessionId),
}

impl Holding {
    /// The session that owns it.
    #[must_use]
    pub const fn owner(self) -> Option<SessionId> {
        match self {
            Self::Vacant => None,
            Self::Owned(session) | Self::Revoking(session) => Some(session),
        }
    }
}

/// One partition in the ledger. A partition that has none was never assigned: it is vacant at revision 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Entry {
    /// Which.
    pub partition: Partition,
    /// When it last changed.
    pub revision: Revision,
    /// Who owns it.
    pub holding: Holding,
}

/// What a coordinator writes about one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Change {
    /// Give it to a session.
    Assign {
        /// Which.
        partition: Partition,
        /// The revision that the coordinator saw.
        seen: Revision,
        /// To whom.
        to: SessionId,
    },
    /// Ask its owner to give it up.
    Revoke {
        /// Which.
        partition: Partition,
        /// The revision that the coordinator saw.
        seen: Revision,
    },
}

impl Change {
    /// The partition that it is about.
    #[must_use]
    pub const fn partition(&self) -> Partition {
        match self {
            Self::Assign { partition, .. } | Self::Revoke { partition, .. } => *partition,
        }
    }
}

/// What coordinator and workers ask of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Which sessions are live: every live session that works, and every one that the ledger names.
    Survey,
    /// Entries that have changed since, in the order of their revisions.
    Read {
        /// Only those after this revision.
        since: Revision,
        /// Only those that name this session. (A worker needs no others.)
        of: Option<SessionId>,
    },
    /// The coordinator writes.
    Publish {
        /// Under which session.
        session: SessionId,
        /// Under which term.
        term: Term,
        /// The revision of the last publication that the coordinator knows of.
        after: Revision,
        /// Sessions that were silent for their whole life. Retired if they still have exactly this pulse.
        retire: Vec<Stamp>,
        /// What is written after that.
        changes: Vec<Change>,
    },
    /// A worker has stopped its work on partitions that were revoked.
    Acknowledge {
        /// Under which session.
        session: SessionId,
        /// Which, with the revision of their revocation.
        released: Vec<(Partition, Revision)>,
    },
}

/// What a store answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// To [`Demand::Survey`].
    Survey {
        /// The ledger's revision, so that a coordinator that nobody tells sees when to read.
        revision: Revision,
        /// Who was seen.
        seen: Vec<Sighting>,
    },
    /// To [`Demand::Read`].
    Read(Page),
    /// To [`Demand::Publish`].
    Published {
        /// The revision that everything changed here has.
        revision: Revision,
        /// What was not changed, because it was not as the coordinator had seen it.
        refused: Vec<Partition>,
    },
    /// To [`Demand::Publish`]: the term is over. Nothing was changed.
    TermOver,
    /// To [`Demand::Publish`]: something else was published since. Nothing was changed.
    Overtaken,
    /// To [`Demand::Acknowledge`].
    Acknowledged {
        /// How often word was left for the session that acknowledges; its own included.
        notices: u64,
    },
}

/// A part of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Page {
    /// The ledger's revision when it was read.
    pub revision: Revision,
    /// The revision of the last publication.
    pub published: Revision,
    /// How often word was left for the session that reads.
    pub notices: u64,
    /// What has changed, in the order of revisions.
    pub entries: Vec<Entry>,
    /// There is more; entries of one revision are never torn apart.
    pub more: bool,
}

/// A session that works, or has worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Whose session.
    pub node: NodeId,
    /// Which.
    pub session: SessionId,
    /// Its last sign of life; `None`: it is over.
    pub pulse: Option<Pulse>,
    /// What the node can carry. (Only a draining node says so here; who is held is the coordinator's to say.)
    pub member: Member,
}
