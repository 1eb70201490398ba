//! Where a scene is read: in a store, or from a node's API.

use std::sync::Arc;

use tenure::{
    ElectionName, EventQuery, EventRecord, Limit, NodeId, NodeRecord, PartitionState, Store, TaskLists,
};
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
    /// Who stands behind the leader; `None` where that is not told.
    pub candidates: Option<Vec<NodeId>>,
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

/// Whether an event is of this election, or of the nodes.
pub fn concerns(event: &EventRecord, election: &str) -> bool {
    event.election.as_ref().is_none_or(|of| of.as_str() == election)
}

/// The newest events of an election, and those of the nodes among the newest of all, up to the last of these: others may
/// have happened between the two questions, and are told by the next.
pub fn merged(mut own: Vec<EventRecord>, all: &[EventRecord]) -> Vec<EventRecord> {
    let last = all.last().map_or(0, |event| event.id);
    own.retain(|event| event.id <= last);
    own.extend(all.iter().filter(|event| event.election.is_none()).cloned());
    own.sort_by_key(|event| event.id);
    let surplus = own.len().saturating_sub(FIRST as usize);
    own.drain(..surplus);
    own
}

impl Source {
    /// Looks; tells what has happened after the event with this id.
    pub async fn look(&mut self, last: u64) -> Result<Look, Failure> {
        match self {
            Self::Store { store, election } => {
                let record = ask(store.read(election.clone())).await?;
                let nodes = newest(ask(store.nodes()).await?);
                let sight = Sight::of(election, &record, &nodes);
                let candidates = ask(store.candidates(election.clone())).await?;
                let candidates = Some(candidates.into_iter().map(|candidate| candidate.node).collect());
                let limit = if last == 0 { Limit::Newest(FIRST) } else { Limit::Oldest(MOST) };
                let query = |election| EventQuery { election, after: last, limit: Some(limit) };
                let all = ask(store.events(query(None))).await?;
                let events = if last == 0 {
                    merged(ask(store.events(query(Some(election.clone())))).await?, &all)
                } else {
                    all.clone()
                };
                let last = all.last().map_or(last, |event| event.id);
                Ok(Look { sight, nodes, candidates, events, last })
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

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use tenure::{EventKind, Term};

    use super::*;

    fn event(id: u64, election: Option<&str>) -> EventRecord {
        EventRecord {
            id,
            sequence: id,
            time: SystemTime::UNIX_EPOCH,
            kind: EventKind::LeaderElected,
            election: election.and_then(|name| ElectionName::new(name).ok()),
            node: None,
            term: Term::new(1),
            data: String::from("{}"),
        }
    }

    #[test]
    fn a_busy_neighbour_pushes_no_event_of_the_election_out() {
        let own = vec![event(3, Some("nightly")), event(5, Some("nightly")), event(302, Some("nightly"))];
        let mut all: Vec<EventRecord> = (102..=300).map(|id| event(id, Some("busy"))).collect();
        all.push(event(301, None));
        let told: Vec<u64> = merged(own, &all).into_iter().map(|event| event.id).collect();
        // What has happened since is told at the next look.
        assert_eq!(told, [3, 5, 301]);
        assert!(concerns(&event(1, None), "nightly") && concerns(&event(1, Some("nightly")), "nightly"));
        assert!(!concerns(&event(1, Some("busy")), "nightly"));
    }
}
