//! Priority is a courtesy among candidates, never a reason to depose.

use std::sync::Arc;

use tenure_core::{Standing, Term};
use tenure_store::Claim;

use super::cast::{Node, candidates, leading, waiting};
use super::fixture::Fixture;

/// Ends the session of a leader without its consent: its lease is free, and is passed on to nobody.
async fn retire(leader: &Node) {
    assert!(leader.store.retire(leader.stamp()).await.expect("the store answers").value);
}

/// But a candidate that has lost patience gets it, and so does one that nobody outranks.
pub async fn a_claim_leaves_a_free_lease_to_a_higher_priority(fixture: Arc<Fixture>) {
    if !fixture.is_a_race().await {
        return;
    }
    let store = fixture.connect().await;
    let (leader, high) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let low = Node::open(&store, "c").await;
    let polite = |node: &Node, priority| Claim { priority, ..node.claim("reports") };

    leader.lead("reports").await;
    let answer = high.send(polite(&high, 5)).await;
    assert!(matches!(answer, Standing::Refused { outranked: false, .. }), "it is held: {answer:?}");
    retire(&leader).await;

    let answer = low.send(polite(&low, 4)).await;
    let Standing::Refused { seen, outranked: true } = answer else { panic!("not outranked: {answer:?}") };
    assert_eq!(seen.holder, None);
    assert_eq!(candidates(&store, "reports").await, ["b", "c"], "the outranked stands too");
    leading(high.send(polite(&high, 5)).await);
    high.resign("reports").await;

    leading(low.send(polite(&low, 4)).await); // the higher one has withdrawn
    waiting(high.send(polite(&high, 5)).await); // and deposes nobody
    retire(&low).await;
    let low = Node::open(&store, "c").await;
    let freed = store.read(super::cast::election("reports")).await.expect("the store answers").value.term;
    let outwaiting = |term| Claim { outwaited: Some(term), ..polite(&low, 4) };
    // Patience with a lease that has changed hands since, or has never been there, is not patience with this one.
    for other in [Term::new(freed.number() - 1), freed.next()] {
        waiting(low.send(outwaiting(other)).await);
    }
    leading(low.send(outwaiting(freed)).await);
    retire(&low).await;
    let low = Node::open(&store, "c").await;
    waiting(low.send(polite(&low, 4)).await);
    high.close().await;
    leading(low.send(polite(&low, 4)).await); // whoever is gone outranks nobody
}

/// Equal priority is no reason to step aside, and a changed one counts at once.
pub async fn candidates_are_ordered_by_priority_and_then_by_arrival(fixture: Arc<Fixture>) {
    if !fixture.is_a_race().await {
        return;
    }
    let store = fixture.connect().await;
    let leader = Node::open(&store, "a").await;
    leader.lead("reports").await;
    let mut nodes = Vec::new();
    for (id, priority) in [("z", 0), ("y", -3), ("x", 7), ("w", 0), ("v", 7), ("u", i32::MIN)] {
        let node = Node::open(&store, id).await;
        waiting(node.send(Claim { priority, ..node.claim("reports") }).await);
        nodes.push(node);
    }
    assert_eq!(candidates(&store, "reports").await, ["x", "v", "z", "w", "y", "u"]);
    waiting(nodes[1].send(Claim { priority: i32::MAX, ..nodes[1].claim("reports") }).await);
    assert_eq!(candidates(&store, "reports").await, ["y", "x", "v", "z", "w", "u"]);
    let told = store.candidates(super::cast::election("reports")).await.expect("the store answers");
    assert_eq!(told.value.iter().map(|c| c.priority).collect::<Vec<_>>(), [i32::MAX, 7, 7, 0, 0, i32::MIN]);

    retire(&leader).await;
    nodes[1].resign("reports").await;
    leading(nodes[4].send(Claim { priority: 7, ..nodes[4].claim("reports") }).await);
}
