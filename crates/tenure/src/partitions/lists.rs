//! The task lists of an election, for those who say what work there is.

use std::sync::Arc;

use tenure_core::partitions::Revision;
use tenure_core::{ElectionName, TaskListName};
use tenure_store::{Arranged, Arrangement, Ledger, LedgerQuery, Listed, Store, StoreError};

use super::documents::TaskList;
use crate::error::PartitionsError;

/// So often a change is tried again when somebody else was quicker.
const TRIES: usize = 8;

/// The task lists of one election. Whoever leads it divides them.
#[derive(Clone)]
pub struct TaskLists {
    store: Arc<dyn Store>,
    pub(super) election: ElectionName,
}

impl TaskLists {
    /// Those of the election `coordinator`.
    ///
    /// # Errors
    /// [`PartitionsError::NoLedger`] if the store keeps none.
    pub fn new(store: Arc<dyn Store>) -> Result<Self, PartitionsError> {
        Self::of(store, super::COORDINATOR)
    }

    /// Those of another election.
    ///
    /// # Errors
    /// [`PartitionsError::NoLedger`] if the store keeps none; [`PartitionsError::Name`] if there cannot be such an
    /// election.
    pub fn of(store: Arc<dyn Store>, election: impl AsRef<str>) -> Result<Self, PartitionsError> {
        let lists = Self { store, election: ElectionName::new(election)? };
        lists.ledger()?;
        Ok(lists)
    }

    pub(super) fn ledger(&self) -> Result<&dyn Ledger, PartitionsError> {
        self.store.ledger().ok_or(PartitionsError::NoLedger)
    }

    /// Makes a task list.
    ///
    /// # Errors
    /// [`PartitionsError::Exists`] if there is one of this name that is not the same; [`PartitionsError::TooMany`] if it
    /// has more than a million partitions.
    pub async fn create(&self, name: impl AsRef<str>, list: TaskList) -> Result<(), PartitionsError> {
        let name = TaskListName::new(name)?;
        self.settle(&name, |found| match found {
            Some(found) if found != list => Err(PartitionsError::Exists { list: name.clone() }),
            _ => Ok(Some(list.clone())),
        })
        .await
    }

    /// Changes a task list.
    ///
    /// # Errors
    /// [`PartitionsError::Absent`] if there is none of this name; [`PartitionsError::TooMany`] if it would have more than
    /// a million partitions.
    pub async fn change(
        &self,
        name: impl AsRef<str>,
        change: impl Fn(&mut TaskList),
    ) -> Result<(), PartitionsError> {
        let name = TaskListName::new(name)?;
        self.settle(&name, |found| {
            let mut list = found.ok_or_else(|| PartitionsError::Absent { list: name.clone() })?;
            change(&mut list);
            Ok(Some(list))
        })
        .await
    }

    /// Drops a task list: nobody works on it any more. One of the same name may be made again.
    ///
    /// # Errors
    /// [`PartitionsError::Absent`] if there is none of this name.
    pub async fn remove(&self, name: impl AsRef<str>) -> Result<(), PartitionsError> {
        let name = TaskListName::new(name)?;
        self.settle(&name, |found| match found {
            Some(_) => Ok(None),
            None => Err(PartitionsError::Absent { list: name.clone() }),
        })
        .await
    }

    /// All task lists that there are.
    ///
    /// # Errors
    /// [`PartitionsError::Store`] if the store gives no answer, or holds what Tenure did not write.
    pub async fn all(&self) -> Result<Vec<(TaskListName, TaskList)>, PartitionsError> {
        let listed = self.read().await?;
        let mut lists = Vec::with_capacity(listed.len());
        for listed in listed {
            if let Some(list) = understood(&listed)? {
                lists.push((listed.name, list));
            }
        }
        Ok(lists)
    }

    async fn read(&self) -> Result<Vec<Listed>, PartitionsError> {
        // One page is enough: it has all task lists, however many entries there are.
        let query = LedgerQuery { election: self.election.clone(), since: 0, of: None };
        Ok(self.ledger()?.leaf(query).await?.value.lists)
    }

    /// Looks, decides, and writes; again, if somebody else has written in between.
    async fn settle(
        &self,
        name: &TaskListName,
        decide: impl Fn(Option<TaskList>) -> Result<Option<TaskList>, PartitionsError>,
    ) -> Result<(), PartitionsError> {
        for _ in 0..TRIES {
            let listed = self.read().await?.into_iter().find(|listed| listed.name == *name);
            let found = listed.as_ref().map_or(Ok(None), understood)?;
            let decided = decide(found)?;
            if let Some(TaskList { partitions, .. }) = decided
                && partitions > TaskList::MOST_PARTITIONS
            {
                return Err(PartitionsError::TooMany { list: name.clone(), partitions });
            }
            let document =
                decided.map(|list| serde_json::to_string(&list).expect("it has only text and numbers in it"));
            let seen: Revision = listed.map_or(0, |listed| listed.revision);
            let (election, list) = (self.election.clone(), name.clone());
            let arranged = self.ledger()?.arrange(Arrangement { election, list, seen, document }).await?;
            if let Arranged::Written { .. } = arranged.value {
                return Ok(());
            }
        }
        let busy = "others change the task list faster than it can be read; try again";
        Err(PartitionsError::Store(StoreError::unavailable(busy)))
    }
}

pub(super) fn understood(listed: &Listed) -> Result<Option<TaskList>, PartitionsError> {
    let Some(document) = &listed.document else { return Ok(None) };
    serde_json::from_str(document).map(Some).map_err(|error| {
        let problem =
            format!("the task list `{}` is not written as this Tenure writes it: {error}", listed.name);
        PartitionsError::Store(StoreError::misconfigured(problem))
    })
}

impl std::fmt::Debug for TaskLists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskLists").field("election", &self.election).finish_non_exhaustive()
    }
}
