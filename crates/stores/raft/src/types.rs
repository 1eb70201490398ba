//! Openraft, in our words.

use crate::machine::Command;
use crate::verbs::Outcome;

openraft::declare_raft_types!(
    /// What this group's log holds, and how its members are called.
    pub(crate) Types:
        D = Command,
        R = Vec<Outcome>,
        NodeId = MemberId,
        Node = openraft::BasicNode,
        SnapshotData = Vec<u8>,
);

/// Names one life of one disk: random, and written down beside the log. A member whose disk was lost comes
/// back under another name, and does not vote twice under the old one.
pub(crate) type MemberId = u64;

pub(crate) type Raft = openraft::Raft<Types>;
pub(crate) type Entry = openraft::Entry<Types>;
pub(crate) type LogId = openraft::LogId<MemberId>;
pub(crate) type Vote = openraft::Vote<MemberId>;
pub(crate) type Peer = openraft::BasicNode;
pub(crate) type SnapshotMeta = openraft::SnapshotMeta<MemberId, Peer>;
pub(crate) type StoredMembership = openraft::StoredMembership<MemberId, Peer>;
pub(crate) type StorageError = openraft::StorageError<MemberId>;
