//! Closing a session frees everything under it at once.

use std::sync::Arc;

use serde_json::json;
use tenure_core::Opening;
use tenure_store::{Cause, EventKind, EventQuery, StoreError};

use super::cast::{Node, candidates, events, fresh_session, holder, last_event, read};
use super::fixture::Fixture;

/// Nobody has to wait for a silence.
pub async fn everything_is_free_at_once(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (leader, rival) = (Node::open(&here, "a").await, Node::open(&there, "b").await);
    let names = ["e1", "e2", "e3"];
    for name in names {
        leader.lead(name).await;
    }
    rival.lead("other").await;
    leader.stand("other").await;
    leader.close().await;

    assert!(candidates(&there, "other").await.is_empty());
    for name in names {
        let record = read(&there, name).await;
        assert_eq!(record.holder, None);
        let last = events(&there, name).await.pop().expect("there is a history");
        assert_eq!((last.kind, last.node), (EventKind::LeaderResigned, Some(leader.id.clone())));
        assert!(rival.lead(name).await > record.term);
    }
}

/// A process that is gone has not resigned: whoever closes its session in its place says so.
pub async fn the_cause_is_recorded_in_every_election_and_for_the_node(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let leader = Node::open(&here, "a").await;
    let names = ["e1", "e2"];
    for name in names {
        leader.lead(name).await;
    }
    there.close(leader.session, Cause::ProcessEnded).await.expect("the store answers");
    let gone = json!({"reason": "process_ended", "witnessed": true});
    for name in names {
        assert_eq!(last_event(&there, name).await, (EventKind::LeaderLost, gone.clone()));
    }
    let all = there.events(EventQuery::default()).await.expect("the store answers").value;
    let left = all.iter().rfind(|event| event.kind == EventKind::NodeLeft).expect("the node is told of");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&left.data).expect("the data is JSON"), gone);
    // It is as free as after any other end.
    let next = Node::open(&here, "b").await;
    for name in names {
        next.lead(name).await;
    }
}

/// Its words that arrive later are void.
pub async fn a_closed_session_is_lost(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let late = node.claim("reports");
    node.close().await;
    let answer = store.claim(late).await;
    assert!(matches!(answer, Err(StoreError::SessionLost)), "{answer:?}");
    node.expect_lost().await;
    assert_eq!(holder(&store, "reports").await, None);

    let restarted = Node::new(&store, "a");
    let opening = store.open(restarted.opening()).await.expect("the store answers").value;
    assert!(matches!(opening, Opening::Opened { .. }), "a closed session occupies no node id");
}

/// What was asked for is already so.
pub async fn closing_again_or_what_is_unknown_is_no_error(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    node.lead("reports").await;
    node.close().await;
    let next = Node::open(&store, "a").await;
    let term = next.lead("reports").await;
    let history = events(&store, "reports").await;
    node.close().await;
    store.close(fresh_session(), Cause::Resigned).await.expect("an unknown session is no error");
    assert_eq!(holder(&store, "reports").await.map(|holder| holder.term), Some(term));
    assert_eq!(events(&store, "reports").await, history);
}
