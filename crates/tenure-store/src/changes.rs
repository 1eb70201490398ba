//! What the events of transactions mean to those who listen: whom each changed election concerns.

use std::collections::BTreeMap;

use tenure_core::{ElectionName, NodeId};

use crate::contract::Hint;
use crate::history::EventKind;
use crate::listeners::Listeners;

/// The elections and nodes that one or more whole transactions have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Changes {
    elections: BTreeMap<ElectionName, Concern>,
    nodes: bool,
}

/// Whom a changed election concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Concern {
    /// Everybody, unless the lease turns out to have been granted by the same transaction.
    Freed,
    /// Who was granted the lease, or is asked to give it up.
    Named(NodeId),
    /// Everybody.
    All,
}

impl Changes {
    /// Takes note of the next event of an election.
    pub fn note(&mut self, kind: EventKind, election: &ElectionName, node: Option<&NodeId>) {
        use EventKind as Kind;
        let concern = match (kind, node) {
            (Kind::LeaderElected | Kind::LeaderChanged | Kind::TransferRequested, Some(node)) => {
                Concern::Named(node.clone())
            }
            (Kind::ElectionStarted | Kind::LeaderLost | Kind::LeaderResigned, _) => Concern::Freed,
            _ => Concern::All,
        };
        if self.elections.get(election) != Some(&Concern::All) {
            self.elections.insert(election.clone(), concern);
        }
    }

    /// A node has come or gone, or has told something about itself.
    pub const fn note_nodes(&mut self) {
        self.nodes = true;
    }

    /// Tells those who listen.
    pub fn post(self, listeners: &Listeners) {
        for (election, concern) in self.elections {
            listeners.post(&match concern {
                Concern::Named(node) => Hint::Named { election, node },
                Concern::Freed | Concern::All => Hint::Election(election),
            });
        }
        if self.nodes {
            listeners.post(&Hint::Nodes);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    /// The hints of these events of one election, the node `a` unless another is named.
    fn told(events: &[(EventKind, &str)]) -> Vec<Hint> {
        let listeners = Listeners::default();
        let mut hints = listeners.subscribe();
        let mut changes = Changes::default();
        for (kind, node) in events {
            changes.note(*kind, &election(), Some(&NodeId::new(*node).unwrap()));
        }
        changes.post(&listeners);
        std::iter::from_fn(|| hints.next().now_or_never().flatten()).collect()
    }

    fn election() -> ElectionName {
        ElectionName::new("e").unwrap()
    }

    fn only(node: &str) -> [Hint; 1] {
        [Hint::Named { election: election(), node: NodeId::new(node).unwrap() }]
    }

    #[test]
    fn a_lease_that_is_passed_on_concerns_the_successor_alone() {
        let resigned = (EventKind::LeaderResigned, "a");
        assert_eq!(
            told(&[resigned, (EventKind::LeaderElected, "b"), (EventKind::LeaderChanged, "b")]),
            only("b")
        );
        assert_eq!(told(&[resigned]), [Hint::Election(election())], "freed, it concerns everybody");
    }

    #[test]
    fn a_request_to_hand_over_concerns_the_leader_alone() {
        assert_eq!(told(&[(EventKind::TransferRequested, "a")]), only("a"));
    }

    #[test]
    fn the_end_of_an_election_concerns_everybody_whoever_is_elected_afterwards() {
        let ended = (EventKind::ElectionDeleted, "a");
        assert_eq!(told(&[ended, (EventKind::LeaderElected, "b")]), [Hint::Election(election())]);
    }
}
