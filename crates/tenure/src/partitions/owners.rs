//! A picture of who owns what.

use std::collections::BTreeMap;

use tenure_core::partitions::{Entry, Holding, Partition};
use tenure_core::{NodeId, SessionId, TaskListName, Term};
use tenure_store::{LedgerQuery, Listed};

use super::TaskLists;
use super::lists::understood;
use crate::error::PartitionsError;

/// How far a partition has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// Nobody owns it.
    Vacant,
    /// A live node owns it.
    Owned,
    /// A live node owns it, and was asked to give it up.
    Revoking,
}

impl PartitionState {
    /// The state in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vacant => "vacant",
            Self::Owned => "owned",
            Self::Revoking => "revoking",
        }
    }
}

/// A partition, and who owns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Of which task list.
    pub task_list: TaskListName,
    /// Which.
    pub partition: u32,
    /// How far it has come.
    pub state: PartitionState,
    /// Who owns it, if anybody.
    pub node: Option<NodeId>,
    /// When it last changed hands or was asked for: while it is owned, its fencing token or a later one.
    pub term: Term,
}

impl TaskLists {
    /// Every partition of every task list, by name and number; also those that are cut off, until their owners have
    /// given them up. Whoever has fallen silent owns what it owned until its session is retired.
    ///
    /// # Errors
    /// [`PartitionsError::Store`] if the store gives no answer.
    pub async fn owners(&self) -> Result<Vec<Owner>, PartitionsError> {
        let (lists, entries) = self.read_all().await?;
        // Looked at afterwards: who owns something had enlisted before.
        let survey = self.ledger()?.survey(self.election.clone()).await?.value;
        let live = survey.workers.into_iter().filter(|worker| worker.pulse.is_some());
        let live: BTreeMap<SessionId, NodeId> = live.map(|worker| (worker.session, worker.node)).collect();
        let mut owners = Vec::new();
        for listed in lists {
            let count = understood(&listed)?.map_or(0, |list| list.partitions);
            let first = Partition { list: listed.number, number: 0 };
            let last = Partition { list: listed.number, number: u32::MAX };
            let written: BTreeMap<u32, &Entry> =
                entries.range(first..=last).map(|(partition, entry)| (partition.number, entry)).collect();
            let cut_off = written.keys().copied().filter(|number| *number >= count);
            for partition in (0..count).chain(cut_off) {
                let owner = owner(&listed.name, partition, written.get(&partition).copied(), &live);
                if partition < count || owner.node.is_some() {
                    owners.push(owner);
                }
            }
        }
        owners
            .sort_by(|one, other| (&one.task_list, one.partition).cmp(&(&other.task_list, other.partition)));
        Ok(owners)
    }

    async fn read_all(&self) -> Result<(Vec<Listed>, BTreeMap<Partition, Entry>), PartitionsError> {
        let (mut since, mut lists, mut entries) = (0, BTreeMap::new(), BTreeMap::new());
        loop {
            let query = LedgerQuery { election: self.election.clone(), since, of: None };
            let leaf = self.ledger()?.leaf(query).await?.value;
            lists.extend(leaf.lists.into_iter().map(|listed| (listed.number, listed)));
            since = leaf.page.entries.last().map_or(leaf.page.revision, |entry| entry.revision);
            entries.extend(leaf.page.entries.into_iter().map(|entry| (entry.partition, entry)));
            if !leaf.page.more {
                return Ok((lists.into_values().collect(), entries));
            }
        }
    }
}

fn owner(
    task_list: &TaskListName,
    partition: u32,
    entry: Option<&Entry>,
    live: &BTreeMap<SessionId, NodeId>,
) -> Owner {
    let holding = entry.map(|entry| entry.holding).unwrap_or_default();
    let node = holding.owner().and_then(|session| live.get(&session)).cloned();
    let state = match holding {
        _ if node.is_none() => PartitionState::Vacant,
        Holding::Revoking(_) => PartitionState::Revoking,
        Holding::Owned(_) | Holding::Vacant => PartitionState::Owned,
    };
    let term = Term::new(entry.map_or(0, |entry| entry.revision));
    Owner { task_list: task_list.clone(), partition, state, node, term }
}
