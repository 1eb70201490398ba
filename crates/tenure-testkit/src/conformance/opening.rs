//! A session is opened once per process life, and a node id belongs to one live session.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{Opening, Pulse, Stamp};
use tenure_store::{EventKind, Open, Store, StoreError, TermEnd};

use super::cast::{Node, TTL, events, fresh_session, holder};
use super::fixture::Fixture;

async fn occupied(store: &Arc<dyn Store>, open: Open) -> Pulse {
    match store.open(open).await.expect("the store answers").value {
        Opening::Occupied { pulse } => pulse,
        Opening::Opened { .. } => panic!("a second process was let in under the id of a live one"),
    }
}

/// The same words again are answered the same, and count like a renewal.
pub async fn it_is_idempotent_and_a_sign_of_life(fixture: Arc<Fixture>) {
    let here = fixture.connect().await;
    let there = fixture.elsewhere(&here).await;
    let node = Node::open(&here, "a").await;
    let term = node.lead("reports").await;
    node.expect_opened(node.opening()).await;
    let again = there.open(Open { sequence: 5, ..node.opening() }).await.expect("the store answers");
    assert!(matches!(again.value, Opening::Opened { .. }));
    let seen = holder(&here, "reports").await.expect("the lease is kept");
    assert_eq!((seen.term, seen.pulse.stamp.sequence), (term, 5));

    node.expect_opened(Open { sequence: 2, ..node.opening() }).await;
    let seen = holder(&here, "reports").await.expect("the lease is kept");
    assert_eq!(seen.pulse.stamp.sequence, 5, "a late duplicate lowers nothing");
    assert_eq!(here.nodes().await.expect("the store answers").value.len(), 1);
}

/// The second process learns whom to time, and leaves no trace.
pub async fn a_live_node_id_is_occupied_and_nothing_changes(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let first = Node::open(&here, "a").await;
    let (other, second) = (Node::open(&here, "b").await, Node::new(&there, "a"));
    first.lead("reports").await;
    other.lead("billing").await;
    let pulse = occupied(&there, second.opening()).await;
    assert_eq!((pulse.stamp, pulse.ttl), (first.stamp(), TTL));
    second.expect_lost().await;

    // Refused as a whole: not even the session that it supersedes is ended.
    let open = Open { supersedes: Some(other.session), ..second.opening() };
    assert_eq!(occupied(&there, open).await.stamp, first.stamp());
    first.renew().await;
    other.renew().await;
    assert!(holder(&here, "reports").await.is_some() && holder(&here, "billing").await.is_some());
    let nodes = here.nodes().await.expect("the store answers").value;
    assert_eq!(nodes.iter().map(|node| node.session()).collect::<Vec<_>>(), [first.session, other.session]);
}

/// A process that lost track of its session opens another one without waiting for the first.
pub async fn a_superseded_session_makes_way(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let first = Node::open(&store, "a").await;
    let term = first.lead("reports").await;
    let second = Node::new(&store, "a");
    let open = Open { supersedes: Some(first.session), ..second.opening() };
    second.expect_opened(open.clone()).await;
    first.expect_lost().await;
    assert_eq!(holder(&store, "reports").await, None, "what the first held is free, not inherited");

    let history = events(&store, "reports").await;
    let lost = history.iter().find(|event| event.kind == EventKind::LeaderLost);
    let lost = lost.expect("the loss is recorded");
    assert_eq!(lost.term, term);
    let data: Value = serde_json::from_str(&lost.data).expect("the data is JSON");
    assert_eq!((&data["reason"], &data["reopened"]), (&json!("superseded"), &json!(true)), "{data}");
    let (silent, ttl) = (data["silent_ms"].as_u64(), data["ttl_ms"].as_u64());
    assert!(silent.zip(ttl).is_some_and(|(silent, ttl)| silent < ttl), "how long it had been silent: {data}");
    assert!(second.lead("reports").await > term);
    second.expect_opened(open).await;
    second.renew().await;
    let unknown = Node::new(&store, "c");
    unknown.expect_opened(Open { supersedes: Some(fresh_session()), ..unknown.opening() }).await;
}

/// The store was away, or the process was held up: the loss is recorded as what it was, and the term as ended with its
/// lease.
pub async fn a_session_that_lapsed_before_it_was_superseded_is_recorded_as_lapsed(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let first = Node::new(&store, "a");
    // Where the servers judge, it must not lapse before it leads.
    let ttl = Duration::from_millis(if fixture.candidates_judge().await { 50 } else { 3_000 });
    let asked = Open { ttl, ..first.opening() };
    let opening = store.open(asked).await.expect("the store answers").value;
    let Opening::Opened { ttl } = opening else { panic!("the node id is free: {opening:?}") };
    let term = first.lead("reports").await;
    tokio::time::sleep(2 * ttl).await;

    let second = Node::new(&store, "a");
    second.expect_opened(Open { supersedes: Some(first.session), ..second.opening() }).await;
    assert!(second.lead("reports").await > term);
    let history = events(&store, "reports").await;
    let lost = history.iter().find(|event| event.kind == EventKind::LeaderLost);
    let lost = lost.expect("the loss is recorded");
    let data: Value = serde_json::from_str(&lost.data).expect("the data is JSON");
    assert_eq!((&data["reason"], &data["reopened"]), (&json!("lapsed"), &json!(true)), "{data}");
    let (silent, ttl) = (data["silent_ms"].as_u64(), data["ttl_ms"].as_u64());
    let (silent, ttl) = silent.zip(ttl).unwrap_or_else(|| panic!("how long it had been silent: {data}"));
    assert!(silent > ttl, "{data}");
    let end = TermEnd::of(lost).expect("it ends a term");
    assert_eq!(end.earliest, end.latest, "its process was alive until its lease ended");
    assert_eq!(lost.time.duration_since(end.latest).ok(), Some(Duration::from_millis(silent - ttl)));
}

/// As for a take-over: a renewal in between saves the session.
pub async fn a_silent_session_makes_way_by_exactly_its_pulse(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let first = Node::open(&store, "a").await;
    let term = first.lead("reports").await;
    let seen = first.stamp();
    first.renew().await;

    let second = Node::new(&store, "a");
    for wrong in [seen, Stamp { sequence: seen.sequence + 7, ..seen }] {
        let open = Open { over: Some(wrong), ..second.opening() };
        assert_eq!(occupied(&store, open).await.stamp, first.stamp());
    }
    second.expect_opened(Open { over: Some(first.stamp()), ..second.opening() }).await;
    first.expect_lost().await;
    assert_eq!(holder(&store, "reports").await, None);
    assert!(second.lead("reports").await > term);
}

/// Not even its own node brings it back: what it held may be another's by now.
pub async fn a_session_that_is_over_cannot_be_opened_again(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let closed = Node::open(&store, "a").await;
    closed.close().await;
    let answer = store.open(Open { sequence: 99, ..closed.opening() }).await;
    assert!(matches!(answer, Err(StoreError::SessionLost)), "{answer:?}");
    closed.expect_lost().await;
    if fixture.candidates_judge().await {
        let retired = Node::open(&store, "b").await;
        let next = Node::new(&store, "b");
        next.expect_opened(Open { over: Some(retired.stamp()), ..next.opening() }).await;
        // A store may forget it once its node is back; then its node id is occupied.
        let answer = store.open(Open { sequence: 99, ..retired.opening() }).await;
        assert!(!matches!(&answer, Ok(told) if matches!(told.value, Opening::Opened { .. })), "{answer:?}");
        retired.expect_lost().await;
        next.renew().await;
    }
}
