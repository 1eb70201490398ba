//! Where a scene is read: in a store, or from a node's API.

use std::sync::Arc;

use tenure::{ElectionName, EventQuery, EventRecord, Limit, NodeRecord, PartitionState, Store, TaskLists};
use tenure_store::newest;

use super::remote::Remote;
use super::sight::Sight;
use crate::failure::Failure;
use crate::store::{ask, within};

/// How many events are asked for at first, and at most at a time.
pub const FIRST: u32 = 200;
const MOST: u32 = 1000;

pub enum Source {
    Store { store: Arc<dyn Store>, election: ElectionName },
    Node(Remote),
}

/// What was seen at one look.
pub struct Look {
    pub sight: Sight,
    pub nodes: Vec<NodeRecord>,
    /// What has happened since the last one.
    pub events: Vec<EventRecord>,
    /// The id of the last event that there is.
    pub last: u64,
}

/// How many partitions are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Division {
    pub owned: usize,
    pub revoking: usize,
    pub vacant: usize,
}

impl Division {
    pub fn of(states: impl IntoIterator<Item = PartitionState>) -> Self {
        let mut division = Self::default();
        for state in states {
            *match state {
                PartitionState::Owned => &mut division.owned,
                PartitionState::Revoking => &mut division.revoking,
                PartitionState::Vacant => &mut division.vacant,
            } += 1;
        }
        division
    }

    pub const fn all(self) -> usize {
        self.owned + self.revoking + self.vacant
    }
}

impl Source {
    /// Looks; tells what has happened after the event with this id.
    pub async fn look(&mut self, last: u64) -> Result<Look, Failure> {
        match self {
            Self::Store { store, election } => {
                let record = ask(store.read(election.clone())).await?;
                let nodes = newest(ask(store.nodes()).await?);
                let sight = Sight::of(election, &record, &nodes);
                let limit = if last == 0 { Limit::Newest(FIRST) } else { Limit::Oldest(MOST) };
                let query = EventQuery { election: None, after: last, limit: Some(limit) };
                let events = ask(store.events(query)).await?;
                let last = events.last().map_or(last, |event| event.id);
                Ok(Look { sight, nodes, events, last })
            }
            Self::Node(remote) => remote.look(last).await,
        }
    }

    /// How the work is divided; nothing where no ledger is kept.
    pub async fn division(&mut self) -> Result<Division, Failure> {
        match self {
            Self::Store { store, election } => {
                let Ok(lists) = TaskLists::of(Arc::clone(store), election.as_str()) else {
                    return Ok(Division::default());
                };
                let owners = within(lists.owners()).await??;
                Ok(Division::of(owners.into_iter().map(|owner| owner.state)))
            }
            Self::Node(remote) => remote.division().await,
        }
    }
}
