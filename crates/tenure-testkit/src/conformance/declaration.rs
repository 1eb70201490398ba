//! What a leader says of the whole cluster is told once, and by nobody else.

use std::sync::Arc;

use tenure_core::{SessionId, Term};
use tenure_store::{Declaration, EventKind, Lease, Store};

use super::cast::{Node, election, events};
use super::fixture::Fixture;
use super::history::assert_sound;

async fn declare(store: &Arc<dyn Store>, session: SessionId, term: Term, degraded: bool) -> bool {
    let lease = Lease { session, election: election("coordinator"), term };
    let declaration = Declaration { lease, degraded, live: 1, minimum: 2 };
    store.declare(declaration).await.expect("the store answers").value
}

async fn told(store: &Arc<dyn Store>) -> Vec<(EventKind, Term)> {
    let history = events(store, "coordinator").await;
    assert_sound(&history);
    let cluster = [EventKind::ClusterDegraded, EventKind::ClusterRecovered];
    history.into_iter().filter(|e| cluster.contains(&e.kind)).map(|e| (e.kind, e.term)).collect()
}

/// Twice the same is no news, and a cluster is well until somebody says otherwise.
pub async fn it_is_told_once_and_only_by_the_leader(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    assert!(!declare(&store, leader.session, Term::new(1), true).await, "nobody leads");
    let term = leader.lead("coordinator").await;
    other.stand("coordinator").await;
    assert!(!declare(&store, other.session, term, true).await, "another leads");
    assert!(!declare(&store, leader.session, Term::new(term.number() + 1), true).await, "under another term");
    assert!(!declare(&store, leader.session, term, false).await, "it was well");
    assert!(declare(&store, leader.session, term, true).await);
    assert!(!declare(&store, leader.session, term, true).await);
    assert!(declare(&store, leader.session, term, false).await);
    assert_eq!(told(&store).await, [(EventKind::ClusterDegraded, term), (EventKind::ClusterRecovered, term)]);
    let last = events(&store, "coordinator").await.pop().expect("something happened");
    assert_eq!(last.node, Some(leader.id.clone()));
    let data: serde_json::Value = serde_json::from_str(&last.data).expect("a JSON object");
    assert_eq!(data, serde_json::json!({"live": 1, "minimum": 2}));
}

/// The next leader says only what has changed.
pub async fn it_outlives_its_leader(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (first, second) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let term = first.lead("coordinator").await;
    assert!(declare(&store, first.session, term, true).await);
    first.close().await;
    assert!(!declare(&store, first.session, term, false).await, "it is over");
    let next = second.lead("coordinator").await;
    assert!(!declare(&store, second.session, next, true).await, "that is known");
    assert!(declare(&store, second.session, next, false).await);
    assert_eq!(told(&store).await, [(EventKind::ClusterDegraded, term), (EventKind::ClusterRecovered, next)]);
}
