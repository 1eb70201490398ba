//! Whoever gives a lease up grants it to the next candidate by the same write. That one leads once it has asked.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Age, Term};
use tenure_store::{Claim, EventKind, Open};

use super::cast::{Node, candidates, events, holder, read, waiting};
use super::fixture::Fixture;
use super::history::assert_sound;

/// Demands that this node holds the lease by now, under the term after `before`, and that it is told so by asking.
async fn expect_granted(node: &Node, before: Term) -> Term {
    let holder = holder(&node.store, "reports").await.expect("the lease was passed on");
    assert_eq!((&holder.node, holder.term), (&node.id, before.next()));
    assert_eq!(holder.pulse.stamp, node.stamp());
    assert_eq!(node.lead("reports").await, before.next(), "asking changes nothing");
    before.next()
}

/// Nobody else can come first, and nobody has to ask twice.
pub async fn a_resigned_lease_is_granted_to_the_first_in_line(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (leader, first) = (Node::open(&here, "a").await, Node::open(&there, "b").await);
    let second = Node::open(&here, "c").await;
    let term = leader.lead("reports").await;
    first.stand("reports").await;
    second.stand("reports").await;
    assert_eq!(first.renew().await.grants, 0);
    leader.resign("reports").await;

    assert_eq!(candidates(&here, "reports").await, ["c"]);
    assert_eq!(first.renew().await.grants, 1, "its renewal tells, if nothing else does");
    leader.stand("reports").await;
    let term = expect_granted(&first, term).await;
    assert_eq!(first.renew().await.grants, 1);
    assert_eq!(second.renew().await.grants, 0);

    first.resign("reports").await;
    let term = expect_granted(&second, term).await;
    second.resign("reports").await;
    let term = expect_granted(&leader, term).await;
    leader.resign("reports").await;
    let record = read(&there, "reports").await;
    assert_eq!((record.holder, record.term), (None, term), "nobody is left");
}

/// If it stands; otherwise it is as if nobody had been named.
pub async fn a_named_candidate_comes_before_the_first_in_line(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, first) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let named = Node::open(&store, "c").await;
    let term = leader.lead("reports").await;
    first.stand("reports").await;
    named.stand("reports").await;
    leader.hand_over("reports", "c").await;
    let term = expect_granted(&named, term).await;

    named.hand_over("reports", "a").await;
    expect_granted(&first, term).await;
}

/// Each is a chance for a server to be behind.
const ROUNDS: usize = 50;

/// Also by a leader whose connection leads to a server that has not heard of the candidate yet.
pub async fn a_candidate_that_was_told_that_it_stands_can_be_named(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (mut leader, mut named) = (Node::open(&here, "a").await, Node::open(&there, "b").await);
    let mut term = leader.lead("reports").await;
    for _ in 0..ROUNDS {
        named.stand("reports").await;
        leader.hand_over("reports", named.id.as_str()).await;
        term = expect_granted(&named, term).await;
        std::mem::swap(&mut leader, &mut named);
    }
}

/// A lease that was granted to a node that does not come would be nobody's for a ttl.
pub async fn a_named_node_that_does_not_stand_is_granted_nothing(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let (withdrawn, gone) = (Node::open(&store, "c").await, Node::open(&store, "d").await);
    leader.lead("reports").await;
    gone.stand("reports").await;
    gone.close().await;
    for named in ["nobody", "a", "b", "c", "d"] {
        leader.lead("reports").await;
        withdrawn.stand("reports").await;
        withdrawn.resign("reports").await;
        leader.hand_over("reports", named).await;
        assert_eq!(holder(&store, "reports").await, None, "{named} was named");
        other.lead("reports").await;
        other.resign("reports").await;
    }
}

/// Who has arrived first does not matter between different priorities.
pub async fn the_order_is_that_of_priority_and_then_of_arrival(fixture: Arc<Fixture>) {
    if !fixture.orders_by_priority().await {
        return;
    }
    let store = fixture.connect().await;
    let leader = Node::open(&store, "a").await;
    let mut term = leader.lead("reports").await;
    let mut nodes = Vec::new();
    for (id, priority) in [("b", 0), ("c", 7), ("d", -1), ("e", 7), ("f", 0)] {
        let node = Node::open(&store, id).await;
        waiting(node.send(Claim { priority, ..node.claim("reports") }).await);
        nodes.push(node);
    }
    let mut resigns = &leader;
    for next in [1, 3, 0, 4, 2] {
        resigns.resign("reports").await;
        term = expect_granted(&nodes[next], term).await;
        resigns = &nodes[next];
    }
}

/// A node that asks for so short a life, and is not renewed.
async fn silent(fixture: &Fixture, leader: &Node, id: &str) -> Node {
    let node = Node::new(&leader.store, id);
    let ttl = Duration::from_millis(50);
    node.expect_opened(Open { ttl, ..node.opening() }).await;
    waiting(node.send(Claim { priority: 9, ..node.claim("reports") }).await);
    let store = fixture.connect().await;
    loop {
        // Asked in a way that writes, too: a clock that is replicated goes on with what is written.
        leader.renew().await;
        let nodes = store.nodes().await.expect("the store answers").value;
        let found = nodes.iter().find(|found| found.info.id == node.id).expect("it is registered");
        match found.pulse.age {
            Age::Exact(age) | Age::Told { age, .. } if age > ttl / 2 => return node,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

/// Its session is still there, but by the store's own clock it is probably gone. That clock decides only who is asked
/// first.
pub async fn a_candidate_that_was_not_renewed_lately_is_passed_over(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let (leader, alive) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let term = leader.lead("reports").await;
    let silent = silent(&fixture, &leader, "c").await;
    alive.stand("reports").await;
    leader.resign("reports").await;
    expect_granted(&alive, term).await;
    silent.renew().await; // nobody has taken it for dead
}

/// Then whoever is there claims it, as after a loss.
pub async fn a_lease_is_free_if_no_candidate_was_renewed_lately(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let leader = Node::open(&store, "a").await;
    let term = leader.lead("reports").await;
    let silent = silent(&fixture, &leader, "c").await;
    leader.resign("reports").await;
    let record = read(&store, "reports").await;
    assert_eq!((record.holder, record.term), (None, term));
    assert_eq!(silent.renew().await.grants, 0);
    assert_eq!(silent.lead("reports").await, term.next());
}

/// Each to the next of its own line.
pub async fn a_closed_session_passes_its_leases_on(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let third = Node::open(&store, "c").await;
    let mut terms = Vec::new();
    for name in ["e1", "e2", "e3"] {
        terms.push(leader.lead(name).await);
    }
    other.stand("e1").await;
    third.stand("e2").await;
    other.stand("e2").await;
    leader.close().await;
    let mut led = Vec::new();
    for name in ["e1", "e2", "e3"] {
        led.push(holder(&store, name).await.map(|holder| (holder.node, holder.term)));
        assert_sound(&events(&store, name).await);
    }
    let expected =
        [Some((other.id.clone(), terms[0].next())), Some((third.id.clone(), terms[1].next())), None];
    assert_eq!(led, expected);
    assert_eq!((other.renew().await.grants, third.renew().await.grants), (1, 1));
}

/// Both halves, in the order in which they happened.
pub async fn a_hand_over_is_told_in_order(fixture: Arc<Fixture>) {
    use EventKind::*;
    let store = fixture.connect().await;
    let (a, b) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let first = a.lead("reports").await;
    b.stand("reports").await;
    a.resign("reports").await;
    a.stand("reports").await;
    b.hand_over("reports", "a").await;
    b.stand("reports").await;
    a.close().await;

    let history = events(&store, "reports").await;
    assert_sound(&history);
    let told: Vec<_> = history
        .iter()
        .map(|event| (event.kind, event.node.as_ref().map_or("", |node| node.as_str()), event.term))
        .collect();
    let (second, third) = (first.next(), first.next().next());
    assert_eq!(
        told[2..],
        [
            (LeaderResigned, "a", first),
            (LeaderElected, "b", second),
            (LeaderChanged, "b", second),
            (TransferRequested, "b", second),
            (LeaderResigned, "b", second),
            (LeaderElected, "a", third),
            (LeaderChanged, "a", third),
            (LeaderResigned, "a", third),
            (LeaderElected, "b", third.next()),
            (LeaderChanged, "b", third.next()),
        ]
    );
}

/// It does not stand any more.
pub async fn who_withdraws_or_leaves_is_granted_nothing(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, last) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let (withdraws, leaves) = (Node::open(&store, "c").await, Node::open(&store, "d").await);
    let term = leader.lead("reports").await;
    for node in [&withdraws, &leaves, &last] {
        node.stand("reports").await;
    }
    withdraws.resign("reports").await;
    leaves.close().await;
    leader.resign("reports").await;
    expect_granted(&last, term).await;
    last.resign("reports").await;
    assert_eq!(holder(&store, "reports").await, None);
}

/// A node that withdraws, or falls ill, while the lease is on its way to it hands it on.
pub async fn a_lease_that_was_passed_on_can_be_given_up_unread(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, first) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let second = Node::open(&store, "c").await;
    let term = leader.lead("reports").await;
    first.stand("reports").await;
    second.stand("reports").await;
    leader.resign("reports").await;
    first.resign("reports").await;
    let term = expect_granted(&second, term.next()).await;

    first.stand("reports").await;
    second.resign("reports").await;
    first.close().await;
    let record = read(&store, "reports").await;
    assert_eq!((record.holder, record.term), (None, term.next()));
}

/// It was sent before the claim that has put its node in line again.
pub async fn a_resignation_from_before_does_not_give_up_what_was_passed_on(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let term = leader.lead("reports").await;
    rival.stand("reports").await;
    let late = rival.resignation("reports");
    store.resign(late.clone()).await.expect("the store answers");
    rival.stand("reports").await;
    leader.resign("reports").await;
    store.resign(late).await.expect("the store answers");
    expect_granted(&rival, term).await;
}
