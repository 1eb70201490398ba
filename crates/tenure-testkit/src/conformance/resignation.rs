//! A resignation frees only what it names, and orders itself among the claims of its session (S6).

use std::sync::Arc;

use serde_json::json;
use tenure_core::Term;
use tenure_store::{Cause, EventKind, Resign};

use super::cast::{Node, candidates, events, holder, last_event, leading, read, waiting};
use super::fixture::Fixture;

/// A program that failed has lost its term; one that succeeded, or was asked to stop, has given it up.
pub async fn the_cause_is_recorded(fixture: Arc<Fixture>) {
    use EventKind::{LeaderLost, LeaderResigned};
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let failed = |key: &str, number: i32| json!({"reason": "program_failed", key: number});
    let causes = [
        (Cause::Resigned, LeaderResigned, json!({})),
        (Cause::ProgramExited(0), LeaderResigned, json!({"exit_code": 0})),
        (Cause::ProgramExited(3), LeaderLost, failed("exit_code", 3)),
        (Cause::ProgramKilled(9), LeaderLost, failed("signal", 9)),
    ];
    for (cause, kind, data) in causes {
        node.lead("reports").await;
        let resign = Resign { cause, ..node.resignation("reports") };
        store.resign(resign).await.expect("the store answers");
        assert_eq!(last_event(&store, "reports").await, (kind, data), "{cause:?}");
        assert_eq!(holder(&store, "reports").await, None, "the lease is free, whatever the cause");
    }
    // For whom the lease is kept is recorded beside it.
    let successor = Node::open(&store, "b").await;
    let term = node.lead("reports").await;
    successor.stand("reports").await;
    let to = Some(successor.id.clone());
    let resign = Resign { to, cause: Cause::ProgramExited(3), ..node.resignation("reports") };
    store.resign(resign).await.expect("the store answers");
    let history = events(&store, "reports").await;
    let of_term = |kind| history.iter().find(|event| (event.kind, event.term) == (kind, term));
    let data = |kind| {
        let event = of_term(kind).expect("it is recorded");
        serde_json::from_str::<serde_json::Value>(&event.data).expect("the data is JSON")
    };
    assert_eq!(data(EventKind::TransferRequested), json!({"to": "b"}));
    assert_eq!(data(LeaderLost), json!({"reason": "program_failed", "exit_code": 3, "to": "b"}));
}

/// A resignation of an earlier term leaves a later grant alone.
pub async fn it_frees_only_its_own_term(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let first = node.lead("reports").await;
    node.resign("reports").await;
    let second = node.lead("reports").await;
    for wrong in [first, Term::new(second.number() + 1)] {
        let resign = Resign { term: Some(wrong), ..node.resignation("reports") };
        store.resign(resign).await.expect("the store answers");
        assert_eq!(holder(&store, "reports").await.map(|holder| holder.term), Some(second));
    }
    let resign = Resign { term: Some(second), ..node.resignation("reports") };
    store.resign(resign).await.expect("the store answers");
    let record = read(&store, "reports").await;
    assert_eq!((record.holder, record.term), (None, second));
}

/// Nobody resigns for another.
pub async fn it_frees_only_its_own_session(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let term = leader.lead("reports").await;
    leader.lead("billing").await;
    rival.resign("reports").await;
    let resign = Resign { term: Some(term), ..rival.resignation("reports") };
    store.resign(resign).await.expect("the store answers");
    assert_eq!(holder(&store, "reports").await.map(|holder| holder.term), Some(term));
    leader.resign("reports").await;
    assert_eq!(holder(&store, "reports").await, None);
    assert!(holder(&store, "billing").await.is_some(), "the other election is untouched");
}

/// It arrives after the node has given up waiting for it: granting it would make a leader that
/// nobody knows of.
pub async fn a_claim_that_it_has_overtaken_is_void(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let late = node.claim("reports");
    node.resign("reports").await;
    assert_eq!(waiting(node.send(late.clone()).await).holder, None);
    assert!(candidates(&store, "reports").await.is_empty(), "a void claim does not stand");

    let term = node.lead("reports").await;
    node.resign("reports").await;
    assert_eq!(waiting(node.send(late).await).term, term);
    assert_eq!(holder(&store, "reports").await, None);
    node.lead("reports").await;
}

/// A late or repeated resignation must not take a lease away that its node was told of since:
/// the node would lead on, and so would its successor.
pub async fn it_is_void_once_a_later_claim_was_answered(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let first = node.lead("reports").await;
    let resign = node.resignation("reports");
    store.resign(resign.clone()).await.expect("the store answers");
    let second = node.lead("reports").await;
    assert!(second > first);
    store.resign(resign).await.expect("the store answers");
    let now = holder(&store, "reports").await.map(|holder| holder.term);
    assert_eq!(now, Some(second), "a duplicate freed the next grant");

    // The same without a grant in between: the claim sent after it was answered before it came.
    let resign = Resign { term: Some(second), ..node.resignation("reports") };
    assert_eq!(leading(node.send(node.claim("reports")).await), second);
    store.resign(resign).await.expect("the store answers");
    let now = holder(&store, "reports").await.map(|holder| holder.term);
    assert_eq!(now, Some(second), "a late resignation freed a lease that was confirmed after it");
}

/// Whoever resigns does not stand any more.
pub async fn it_withdraws_the_candidate(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    leader.lead("reports").await;
    rival.stand("reports").await;
    assert_eq!(candidates(&store, "reports").await, ["b"]);
    let resign = rival.resignation("reports");
    store.resign(resign.clone()).await.expect("the store answers");
    assert!(candidates(&store, "reports").await.is_empty());
    assert!(holder(&store, "reports").await.is_some());

    rival.stand("reports").await;
    store.resign(resign).await.expect("the store answers");
    assert_eq!(candidates(&store, "reports").await, ["b"], "a duplicate withdrew who stood up since");
}

/// There is nothing left to free, which is what was asked for.
pub async fn it_is_no_error_under_a_session_that_is_over(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (node, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    node.lead("reports").await;
    node.close().await;
    let term = other.lead("reports").await;
    node.resign("reports").await;
    Node::new(&store, "c").resign("reports").await;
    assert_eq!(holder(&store, "reports").await.map(|holder| holder.term), Some(term));
}
