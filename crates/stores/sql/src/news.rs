//! News: a connection that hears what happens. Hints, and never truth: when it is cut, waits are
//! longer, and nothing else changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_core::{ElectionName, Namespace, NodeId};
use tenure_store::{Changes, Hint, Listeners, News};

use crate::database::Database;
use crate::line::Line;

/// How soon a connection that was lost is opened again.
const RETRY: Duration = Duration::from_millis(500);

/// Those who want to hear of changes.
pub struct Ears {
    listeners: Weak<Listeners>,
    heard: AtomicBool,
}

impl Ears {
    /// Whether there is still somebody to tell.
    #[must_use]
    pub fn are_left(&self) -> bool {
        self.listeners.strong_count() > 0
    }

    /// From now on nothing is missed; what happened before has to be looked for.
    pub fn open(&self) {
        self.heard.store(true, Ordering::Relaxed);
        self.tell(&Hint::All);
    }

    /// Something may have changed.
    pub fn tell(&self, hint: &Hint) {
        if let Some(listeners) = self.listeners.upgrade() {
            listeners.post(hint);
        }
    }

    /// These elections and nodes have changed.
    pub fn tell_changes(&self, changes: Changes) {
        if let Some(listeners) = self.listeners.upgrade() {
            changes.post(&listeners);
        }
    }
}

/// What is told of an election, for all or for one node only; without a name, of the nodes.
#[must_use]
pub fn hint(election: &str, only_node: Option<&str>) -> Hint {
    if election.is_empty() {
        return Hint::Nodes;
    }
    match (ElectionName::new(election), only_node.map(NodeId::new)) {
        (Ok(election), None) => Hint::Election(election),
        (Ok(election), Some(Ok(node))) => Hint::Named { election, node },
        // A name that is none was not written by us; but something has happened.
        _ => Hint::All,
    }
}

/// Listens until nobody is left to tell.
pub(crate) async fn listen<D: Database>(
    database: Arc<D>,
    namespace: Namespace,
    listeners: Weak<Listeners>,
    line: Arc<Line<D>>,
) {
    if matches!(database.news(), News::Poll) {
        return;
    }
    let ears = Ears { listeners, heard: AtomicBool::new(false) };
    let mut silent = false;
    while ears.are_left() {
        let outcome = database.hear(&namespace, &ears, &line).await;
        let heard = ears.heard.swap(false, Ordering::Relaxed);
        match outcome {
            // Once is enough: without news, waits are longer, and that is all.
            Err(error) if !heard && !silent => {
                tracing::warn!(%error, thread = D::THREAD, "there is no news, so candidates have to look");
            }
            Err(error) => tracing::debug!(%error, thread = D::THREAD, "news is interrupted"),
            Ok(()) => {}
        }
        silent = !heard;
        // Whatever happened since was not heard.
        ears.tell(&Hint::All);
        tokio::time::sleep(RETRY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_about_an_election_the_nodes_or_everything() {
        let election = ElectionName::new("nightly").unwrap();
        assert_eq!(hint("nightly", None), Hint::Election(election.clone()));
        let node = NodeId::new("a").unwrap();
        assert_eq!(hint("nightly", Some("a")), Hint::Named { election, node });
        assert_eq!(hint("", None), Hint::Nodes);
        assert_eq!(hint("a\nb", None), Hint::All);
        assert_eq!(hint("nightly", Some("")), Hint::All);
    }
}
