//! Priority orders candidates, and is never a reason to depose.

use std::sync::Arc;

use tenure_store::Claim;

use super::cast::{Node, candidates, leading, waiting};
use super::fixture::Fixture;

/// Ends the session of a leader without its consent: its lease is free, and is passed on to nobody.
async fn retire(leader: &Node) {
    assert!(leader.store.retire(leader.stamp()).await.expect("the store answers").value);
}

/// Whoever asks first, and whoever has arrived first.
pub async fn a_free_lease_that_is_claimed_is_granted_to_a_higher_priority(fixture: Arc<Fixture>) {
    if !fixture.orders_by_priority().await {
        return;
    }
    let store = fixture.connect().await;
    let (leader, high) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let low = Node::open(&store, "c").await;
    let with = |node: &Node, priority| Claim { priority, ..node.claim("reports") };

    let term = leader.lead("reports").await;
    waiting(high.send(with(&high, 5)).await);
    retire(&leader).await;
    let seen = waiting(low.send(with(&low, 4)).await);
    let granted = seen.holder.map(|holder| (holder.node, holder.term));
    assert_eq!(granted, Some((high.id.clone(), term.next())), "by the very write that found it free");
    assert_eq!(candidates(&store, "reports").await, ["c"], "whoever has asked stands in line");
    assert_eq!(high.renew().await.grants, 1);
    assert_eq!(leading(high.send(with(&high, 5)).await), term.next());

    retire(&high).await;
    leading(low.send(with(&low, 4)).await); // whoever is gone comes before nobody
    let equal = Node::open(&store, "d").await;
    waiting(equal.send(with(&equal, 4)).await);
    retire(&low).await;
    let other = Node::open(&store, "e").await;
    leading(other.send(with(&other, 4)).await); // nor does an equal, however long it has waited
}

/// The priority of a claim is the one that counts, not that with which its candidate stood before.
pub async fn whoever_lowers_its_priority_is_not_before_itself(fixture: Arc<Fixture>) {
    if !fixture.orders_by_priority().await {
        return;
    }
    let store = fixture.connect().await;
    let (leader, falls) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let middle = Node::open(&store, "c").await;
    let with = |node: &Node, priority| Claim { priority, ..node.claim("reports") };
    leader.lead("reports").await;
    waiting(falls.send(with(&falls, 10)).await);
    waiting(middle.send(with(&middle, 5)).await);
    retire(&leader).await;
    let seen = waiting(falls.send(with(&falls, 0)).await);
    assert_eq!(seen.holder.map(|holder| holder.node), Some(middle.id.clone()));
}

/// Equal priority is no reason to step aside, and a changed one counts at once.
pub async fn candidates_are_ordered_by_priority_and_then_by_arrival(fixture: Arc<Fixture>) {
    if !fixture.orders_by_priority().await {
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
