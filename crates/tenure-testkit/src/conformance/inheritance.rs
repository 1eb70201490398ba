//! A lease that was handed over is its heir's, as long as that makes sense.

use std::sync::Arc;

use tenure_core::NodeId;
use tenure_store::Resign;

use super::cast::{Node, read, successor};
use super::fixture::Fixture;

/// Each is a chance for a server to be behind.
const ROUNDS: usize = 50;

async fn hand_over(leader: &Node, heir: &NodeId) {
    let resign = Resign { to: Some(heir.clone()), ..leader.resignation("reports") };
    leader.store.resign(resign).await.expect("the store answers");
}

/// Whoever comes first in between is refused, and sees for whom.
pub async fn a_lease_that_was_handed_over_is_its_heirs(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, heir) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let other = Node::open(&store, "c").await;
    let term = leader.lead("reports").await;
    heir.stand("reports").await;
    hand_over(&leader, &heir.id).await;

    for node in [&other, &leader] {
        let seen = node.stand("reports").await;
        assert_eq!(successor(&seen), Some(&heir.id));
    }
    assert!(heir.lead("reports").await > term);
    assert_eq!(read(&store, "reports").await.heir, None, "an inheritance is taken once");
    heir.resign("reports").await;
    other.lead("reports").await;
}

/// Also by a leader whose connection leads to a server that has not heard of the candidate yet.
pub async fn whoever_was_told_that_it_stands_can_be_handed_the_lease(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (mut leader, mut heir) = (Node::open(&here, "a").await, Node::open(&there, "b").await);
    leader.lead("reports").await;
    for round in 0..ROUNDS {
        heir.stand("reports").await;
        hand_over(&leader, &heir.id).await;
        assert_eq!(successor(&read(&here, "reports").await), Some(&heir.id), "round {round}");
        heir.lead("reports").await;
        std::mem::swap(&mut leader, &mut heir);
    }
}

/// A lease kept for somebody who does not come would be nobody's.
pub async fn an_heir_that_does_not_stand_is_ignored(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let (withdrawn, gone) = (Node::open(&store, "c").await, Node::open(&store, "d").await);
    for heir in ["nobody", "a", "b", "c", "d"] {
        leader.lead("reports").await;
        withdrawn.stand("reports").await;
        withdrawn.resign("reports").await;
        if heir == "d" {
            gone.stand("reports").await;
            gone.close().await;
        }
        hand_over(&leader, &NodeId::new(heir).expect("the suite uses good names")).await;
        let record = read(&store, "reports").await;
        assert_eq!((record.holder, record.heir), (None, None), "kept for {heir}");
        other.lead("reports").await;
        other.resign("reports").await;
    }
}

/// Whoever is gone, or does not want it any more, keeps nobody waiting.
pub async fn an_heir_that_withdraws_or_leaves_inherits_nothing(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    for leaves in [false, true] {
        let heir = Node::open(&store, "c").await;
        leader.lead("reports").await;
        heir.stand("reports").await;
        hand_over(&leader, &heir.id).await;
        assert_eq!(successor(&read(&store, "reports").await), Some(&heir.id));
        if leaves {
            heir.close().await;
        } else {
            heir.resign("reports").await;
        }
        assert_eq!(successor(&read(&store, "reports").await), None);
        other.lead("reports").await;
        other.resign("reports").await;
        heir.close().await;
    }
}
