//! A silent session is retired by exactly the pulse that was seen of it, whether or not it holds anything.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Stamp;
use tenure_store::{EventKind, EventQuery, NodeState, Store};

use super::cast::{Node, candidates, events, fresh_session, holder};
use super::fixture::Fixture;

async fn retire(store: &Arc<dyn Store>, over: Stamp) -> bool {
    store.retire(over).await.expect("the store answers").value
}

async fn state(store: &Arc<dyn Store>, node: &Node) -> Option<NodeState> {
    let nodes = store.nodes().await.expect("the store answers").value;
    nodes.iter().find(|found| found.session() == node.session).map(|found| found.state)
}

async fn told_of_nodes(store: &Arc<dyn Store>) -> Vec<EventKind> {
    let all = store.events(EventQuery::default()).await.expect("the store answers").value;
    all.iter().filter(|event| event.election.is_none()).map(|event| event.kind).collect()
}

/// A renewal in between saves it.
pub async fn it_needs_exactly_the_pulse_that_was_seen(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let old = store.nodes().await.expect("the store answers").value[0].pulse.stamp;
    assert_eq!(old, node.stamp());
    node.renew().await;
    let another = Stamp { session: fresh_session(), ..node.stamp() };
    for wrong in [old, Stamp { sequence: old.sequence + 2, ..old }, another] {
        assert!(!retire(&store, wrong).await);
    }
    node.renew().await;
    assert!(retire(&store, node.stamp()).await);
    node.expect_lost().await;
}

/// It is told once, however often it is asked for.
pub async fn it_ends_a_session_that_holds_nothing(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (silent, live) = (Node::open(&here, "a").await, Node::open(&here, "b").await);
    let done = [retire(&here, silent.stamp()).await, retire(&there, silent.stamp()).await];
    assert_eq!(done, [true, false]);
    silent.expect_lost().await;
    live.renew().await;
    assert_eq!(state(&there, &silent).await, Some(NodeState::Expired));
    assert_eq!(state(&there, &live).await, Some(NodeState::Live));
    use EventKind::{NodeExpired, NodeJoined};
    assert_eq!(told_of_nodes(&there).await, [NodeJoined, NodeJoined, NodeExpired]);
}

/// Leases and places in line.
pub async fn it_frees_what_the_session_held(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let (silent, live) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let lost = silent.lead("reports").await;
    live.lead("billing").await;
    silent.stand("billing").await;
    assert!(retire(&store, silent.stamp()).await);
    assert_eq!(holder(&store, "reports").await, None);
    assert!(candidates(&store, "billing").await.is_empty());
    let last = events(&store, "reports").await.pop().expect("something happened");
    assert_eq!((last.kind, last.term), (EventKind::LeaderLost, lost));
    assert!(live.lead("reports").await > lost);
}

/// The node that was only slow is back with another session, under its own name.
pub async fn a_retired_node_registers_again(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let slow = Node::open(&store, "a").await;
    assert!(retire(&store, slow.stamp()).await);
    let back = Node::open(&store, "a").await;
    assert_eq!(state(&store, &back).await, Some(NodeState::Live));
    assert_eq!(state(&store, &slow).await, None, "a node is listed once, with its newest session");
}

/// What lives stays, however old; and what is over still is, when it was forgotten.
pub async fn a_purge_forgets_only_what_is_no_more(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (left, live) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    left.close().await;
    let purge = async |older_than| store.purge(older_than).await.expect("the store answers").value;
    assert_eq!(purge(Duration::from_secs(3600)).await, 0);
    let listed = store.nodes().await.expect("the store answers").value.len() as u64;
    // The wall clock that it goes by has to tick once.
    while purge(Duration::ZERO).await != listed - 1 {
        tokio::task::yield_now().await;
    }
    let nodes = store.nodes().await.expect("the store answers").value;
    assert_eq!(nodes.iter().map(|node| node.session()).collect::<Vec<_>>(), [live.session]);
    left.expect_lost().await;
    live.renew().await;
}
