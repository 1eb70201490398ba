//! What a ledger keeps: its head, and its entries in leaves of some dozens each.
//!
//! Whatever changes a ledger is one transaction that names the version of its head. So no two of them overlap,
//! and whoever has read the head knows which leaves have changed since. A leaf is small, so that a publication
//! whose changes are all in different ones stays below the megabyte that the servers accept.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tenure_core::partitions::{Change, Entry, Holding, Partition, Revision};
use tenure_core::{ElectionName, SessionId};
use tenure_store::StoreError;
use zookeeper_client::{Client, CreateMode, Error, MultiReadResult};

use crate::documents;
use crate::error::{Over, classify};
use crate::inner::Inner;
use crate::multi::Multi;
use crate::view::MOST;

/// So many partitions of a task list share a leaf.
const LEAF: u32 = 50;

/// `ledgers/ELECTION`: how far it has come, and when each leaf last changed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HeadDocument {
    pub revision: Revision,
    pub published: Revision,
    /// When a task list was last arranged.
    pub arranged: Revision,
    pub leaves: BTreeMap<String, Revision>,
}

/// A ledger's head, as it was read.
pub(crate) struct Head {
    pub document: HeadDocument,
    version: Option<i32>,
}

impl Head {
    /// As this connection's server knows it: it has caught up, or what is written names the version.
    pub(crate) async fn read(
        inner: &Inner,
        client: &Client,
        over: Over,
        election: &ElectionName,
    ) -> Result<Self, StoreError> {
        let path = inner.paths().ledger(election);
        match client.get_data(&path).await {
            Ok((data, stat)) => {
                Ok(Self { document: documents::read(&path, &data)?, version: Some(stat.version) })
            }
            Err(Error::NoNode) => Ok(Self { document: HeadDocument::default(), version: None }),
            Err(error) => Err(classify(&error, over)),
        }
    }

    /// Nobody has written of this ledger yet.
    pub(crate) fn is_new(&self) -> bool {
        self.version.is_none()
    }

    /// Makes the change of the head part of a transaction, which nobody has come before.
    pub(crate) fn add_to(&self, multi: &mut Multi<'_>, inner: &Inner, election: &ElectionName) {
        let (paths, data) = (inner.paths(), documents::write(&self.document));
        let path = paths.ledger(election);
        if let Some(version) = self.version {
            multi.set(&path, &data, Some(version));
            return;
        }
        let persistent = inner.link.options(CreateMode::Persistent);
        multi.create(&path, &data, &persistent);
        for folder in [paths.leaves(election), paths.workers(election), paths.task_lists(election)] {
            multi.create(&folder, b"", &persistent);
        }
    }
}

/// In a leaf: number, revision, owner, and whether it was asked to give it up.
type EntryDocument = (u32, Revision, Option<String>, bool);

/// Some leaves, as they were read; and what is to be written of them.
#[derive(Default)]
pub(crate) struct Leaves {
    read: BTreeMap<String, Option<i32>>,
    entries: BTreeMap<Partition, (Revision, Holding)>,
    changed: BTreeSet<String>,
}

pub(crate) fn leaf_of(partition: Partition) -> String {
    format!("{}-{}", partition.list, partition.number / LEAF)
}

impl Leaves {
    pub(crate) async fn read(
        inner: &Inner,
        client: &Client,
        over: Over,
        election: &ElectionName,
        names: BTreeSet<String>,
    ) -> Result<Self, StoreError> {
        let folder = inner.paths().leaves(election);
        let mut leaves = Self::default();
        let names: Vec<String> = names.into_iter().collect();
        for names in names.chunks(MOST) {
            let mut reader = client.new_multi_reader();
            for name in names {
                reader.add_get_data(&format!("{folder}/{name}")).map_err(|error| classify(&error, over))?;
            }
            let read = reader.commit().await.map_err(|error| classify(&error, over))?;
            for (name, read) in names.iter().zip(read) {
                match read {
                    MultiReadResult::Data { data, stat } => leaves.take(name, &data, stat.version)?,
                    MultiReadResult::Error { err: Error::NoNode } => {
                        leaves.read.insert(name.clone(), None);
                    }
                    MultiReadResult::Error { err } => return Err(classify(&err, over)),
                    _ => return Err(classify(&Error::MarshallingError, over)),
                }
            }
        }
        Ok(leaves)
    }

    fn take(&mut self, name: &str, data: &[u8], version: i32) -> Result<(), StoreError> {
        let list = name.split('-').next().and_then(|list| list.parse().ok());
        let list = list.ok_or_else(|| crate::error::foreign(name, "it is no leaf of a ledger"))?;
        let read: Vec<EntryDocument> = documents::read(name, data)?;
        for (number, revision, owner, revoking) in read {
            let owner = owner.map(|hex| documents::session(name, &hex)).transpose()?;
            let holding = match owner {
                None => Holding::Vacant,
                Some(owner) if revoking => Holding::Revoking(owner),
                Some(owner) => Holding::Owned(owner),
            };
            self.entries.insert(Partition { list, number }, (revision, holding));
        }
        self.read.insert(name.to_owned(), Some(version));
        Ok(())
    }

    pub(crate) fn entry(&self, partition: Partition) -> (Revision, Holding) {
        self.entries.get(&partition).copied().unwrap_or_default()
    }

    /// All sessions that are named.
    pub(crate) fn owners(&self) -> BTreeSet<SessionId> {
        self.entries.values().filter_map(|(_, holding)| holding.owner()).collect()
    }

    /// What was changed in between, in the order of revisions.
    pub(crate) fn between(&self, since: Revision, until: Revision) -> Vec<Entry> {
        let entries = self.entries.iter().map(|(partition, (revision, holding))| Entry {
            partition: *partition,
            revision: *revision,
            holding: *holding,
        });
        let mut entries: Vec<Entry> =
            entries.filter(|entry| entry.revision > since && entry.revision <= until).collect();
        entries.sort_by_key(|entry| (entry.revision, entry.partition));
        entries
    }

    pub(crate) fn write(&mut self, partition: Partition, revision: Revision, holding: Holding) {
        self.entries.insert(partition, (revision, holding));
        self.changed.insert(leaf_of(partition));
    }

    pub(crate) fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Makes what was written part of a transaction, and tells the head.
    pub(crate) fn add_to(
        &self,
        multi: &mut Multi<'_>,
        inner: &Inner,
        election: &ElectionName,
        head: &mut HeadDocument,
        revision: Revision,
    ) {
        let folder = inner.paths().leaves(election);
        for name in &self.changed {
            let mine = self.entries.iter().filter(|(partition, _)| leaf_of(**partition) == *name);
            let document: Vec<EntryDocument> = mine.map(document).collect();
            let (path, data) = (format!("{folder}/{name}"), documents::write(&document));
            match self.read.get(name).copied().flatten() {
                Some(version) => multi.set(&path, &data, Some(version)),
                None => multi.create(&path, &data, &inner.link.options(CreateMode::Persistent)),
            };
            head.leaves.insert(name.clone(), revision);
        }
        head.revision = revision;
    }
}

fn document((partition, (revision, holding)): (&Partition, &(Revision, Holding))) -> EntryDocument {
    let owner = holding.owner().map(|owner| owner.to_string());
    (partition.number, *revision, owner, matches!(holding, Holding::Revoking(_)))
}

/// What a change makes of its entry, unless it is refused.
pub(crate) fn judge(
    change: &Change,
    leaves: &Leaves,
    lives: impl Fn(SessionId) -> bool,
    works: impl Fn(SessionId) -> bool,
) -> Option<Holding> {
    let (at, before) = leaves.entry(change.partition());
    let owner = before.owner().filter(|owner| lives(*owner));
    match *change {
        Change::Assign { seen, to, .. } => {
            let may = seen == at && owner.is_none() && works(to) && lives(to);
            may.then_some(Holding::Owned(to))
        }
        Change::Revoke { seen, .. } => owner.filter(|_| seen == at).map(Holding::Revoking),
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::partitions::BATCH;

    use super::*;

    #[test]
    fn a_publication_fits_even_if_every_change_touches_another_leaf() {
        const ACCEPTED: usize = 0xf_ffff; // jute.maxbuffer, as it comes
        let largest = (u32::MAX, Revision::MAX, Some("f".repeat(32)), false);
        let leaf = vec![largest; LEAF as usize];
        assert!(documents::write(&leaf).len() * BATCH < ACCEPTED);
    }

    #[test]
    fn what_is_written_into_a_leaf_is_read_from_it() {
        let owner = SessionId::from_u128(7);
        let part = |number| Partition { list: 3, number };
        let mut leaves = Leaves::default();
        leaves.write(part(120), 9, Holding::Revoking(owner));
        leaves.write(part(149), 8, Holding::Owned(owner));
        leaves.write(part(101), 4, Holding::Vacant);
        assert_eq!(leaves.changed, BTreeSet::from([String::from("3-2")]));
        let written: Vec<EntryDocument> = leaves.entries.iter().map(document).collect();
        let mut read = Leaves::default();
        read.take("3-2", &documents::write(&written), 5).unwrap();
        assert_eq!(read.entries, leaves.entries);
        assert_eq!(read.owners(), BTreeSet::from([owner]));
        let numbers = |entries: Vec<Entry>| entries.iter().map(|e| e.partition.number).collect::<Vec<_>>();
        assert_eq!(numbers(read.between(4, 8)), [149]);
        assert_eq!(numbers(read.between(0, 9)), [101, 149, 120]);
    }
}
