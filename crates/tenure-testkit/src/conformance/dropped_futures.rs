//! A dropped future leaves its request in an unknown state, and the store usable.

use std::sync::Arc;

use futures_util::FutureExt;
use tenure_core::Sequence;
use tenure_store::{EventQuery, Store};

use super::cast::{Node, election, events, holder, read};
use super::fixture::Fixture;
use super::history::assert_sound;

const DROPS: usize = 200;

/// Polls a verb once, as far as it gets, and drops it.
fn start_and_drop(store: &Arc<dyn Store>, node: &Node, step: usize, sequence: Sequence) {
    match step % 9 {
        0 | 1 => drop(store.claim(node.claim("reports")).now_or_never()),
        2 => drop(store.renew(node.session, sequence, 2).now_or_never()),
        3 => drop(store.resign(node.resignation("reports")).now_or_never()),
        4 => drop(store.read(election("reports")).now_or_never()),
        5 => {
            let ghost = Node::new(store, &format!("ghost-{step}"));
            drop(store.open(ghost.opening()).now_or_never());
        }
        6 => drop(store.events(EventQuery::default()).now_or_never()),
        7 => drop(store.delete(election("reports"), false).now_or_never()),
        _ => drop(store.open(node.opening()).now_or_never()),
    }
}

/// Afterwards there is at most one holder, the history makes sense, and the store works.
pub async fn nothing_is_lost_when_futures_are_dropped_half_way(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let nodes = [Node::open(&here, "a").await, Node::open(&here, "b").await, Node::open(&there, "c").await];
    let mut highest = read(&there, "reports").await.term;
    for step in 0..DROPS {
        // Steps of one node after another, so that every node comes to every verb.
        let node = &nodes[(step / 9) % nodes.len()];
        start_and_drop(&node.store, node, step, 2 + step as Sequence);
        if step % 20 == 0 {
            let term = read(&here, "reports").await.term;
            assert!(term >= highest, "the term fell");
            highest = term;
        }
    }
    // Whatever is still on its way: a claim that arrives after the close is void.
    for node in &nodes {
        let renewal = node.renew_as(1_000_000).await.expect("no session was lost");
        assert!(renewal.previous <= 1_000_000);
        node.close().await;
    }
    let successor = Node::open(&there, "d").await;
    let term = successor.lead("reports").await;
    assert!(term > highest);
    for store in [&here, &there] {
        let seen = holder(store, "reports").await.expect("somebody leads");
        assert_eq!((seen.node, seen.term), (successor.id.clone(), term));
    }
    assert_sound(&events(&here, "reports").await);
}
