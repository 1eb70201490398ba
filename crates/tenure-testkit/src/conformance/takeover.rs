//! A silent holder is retired by exactly the pulse that its rival saw, and as a whole (S3, S4).

use std::sync::Arc;

use tenure_core::Stamp;
use tenure_store::EventKind;

use super::cast::{Node, TTL, candidates, events, fresh_session, holder, leading, waiting};
use super::fixture::Fixture;

/// A renewal in between saves the holder; an unchanged pulse does not.
pub async fn it_needs_exactly_the_pulse_that_was_seen(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (leader, rival) = (Node::open(&here, "a").await, Node::open(&there, "b").await);
    let term = leader.lead("reports").await;
    let old = rival.stand("reports").await.holder.expect("the holder is seen").pulse.stamp;
    leader.renew().await;

    let future = Stamp { sequence: old.sequence + 2, ..old };
    let another = Stamp { session: fresh_session(), ..leader.stamp() };
    for wrong in [old, future, another] {
        let seen = waiting(rival.send(rival.claim_over("reports", wrong)).await);
        let seen = seen.holder.expect("the holder stays");
        assert_eq!((seen.term, seen.pulse.stamp), (term, leader.stamp()));
    }
    leader.renew().await;

    let fresh = rival.stand("reports").await.holder.expect("the holder is seen").pulse.stamp;
    assert!(leading(rival.send(rival.claim_over("reports", fresh)).await) > term);
    assert_eq!(holder(&here, "reports").await.map(|holder| holder.node), Some(rival.id.clone()));
}

/// The old holder can never renew into its successor's term.
pub async fn it_retires_the_whole_session(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    leader.lead("reports").await;
    leader.lead("billing").await;
    rival.lead("invoices").await;
    leader.stand("invoices").await;

    leading(rival.send(rival.claim_over("reports", leader.stamp())).await);
    leader.expect_lost().await;
    assert!(candidates(&store, "invoices").await.is_empty(), "what is over does not stand");
    leader.resign("reports").await;
    leader.close().await;
    assert_eq!(
        holder(&store, "reports").await.map(|holder| holder.node),
        Some(rival.id.clone()),
        "late words of the retired change nothing"
    );
}

/// One silence, one judgement: nobody has to time it again for each election.
pub async fn it_frees_every_election_of_the_session(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let names = ["e1", "e2", "e3", "e4"];
    for name in names {
        leader.lead(name).await;
    }
    leading(rival.send(rival.claim_over("e1", leader.stamp())).await);
    for name in names {
        let lost = events(&store, name).await.into_iter().find(|event| event.kind == EventKind::LeaderLost);
        let lost = lost.unwrap_or_else(|| panic!("the loss of {name} is recorded"));
        assert_eq!(lost.node.as_ref(), Some(&leader.id));
        let data: serde_json::Value = serde_json::from_str(&lost.data).expect("it is JSON");
        assert_eq!(data["reason"], "lapsed");
        assert!(data["silent_ms"].is_u64(), "how long it had been silent: {data}");
        assert_eq!(data["ttl_ms"], u64::try_from(TTL.as_millis()).expect("it is short"), "{data}");
        assert!(data["reopened"].is_null(), "another node has taken over: {data}");
    }
    for name in &names[1..] {
        assert_eq!(holder(&store, name).await, None);
        rival.lead(name).await;
    }
}

/// A pulse is permission to retire the holder of this election, and only that.
pub async fn it_touches_nobody_but_the_holder(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let (leader, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let rival = Node::open(&store, "c").await;
    leader.lead("reports").await;
    other.lead("billing").await;
    waiting(rival.send(rival.claim_over("reports", other.stamp())).await);
    other.renew().await;
    leader.renew().await;
    assert_eq!(holder(&store, "billing").await.map(|holder| holder.node), Some(other.id.clone()));
    assert_eq!(holder(&store, "reports").await.map(|holder| holder.node), Some(leader.id.clone()));
}
