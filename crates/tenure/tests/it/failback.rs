//! A candidate of higher priority takes leadership back, if it was told to.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{memory, soon, start};
use tenure::{Election, EventKind, EventQuery, Node, NodeBuilder, Store, Term};

/// A node that asks a leader of lower priority to make way, after it has stood for a ttl and again after each further
/// one. That is longer than a machine may stand still: no lease lapses, and nobody has to ask twice.
fn asks(id: &str, priority: i32) -> NodeBuilder {
    let (ttl, renewals) = (Duration::from_secs(5), Duration::from_millis(100));
    Node::builder(id).ttl(ttl).renew_every(renewals).priority(priority).failback(true)
}

/// A node that leads whenever it is elected, and makes way when it is asked.
fn works(node: &Node) -> Election {
    let election = node.election("reports").unwrap();
    let own = election.clone();
    tokio::spawn(async move {
        while let Ok(leadership) = own.elected().await {
            leadership.lost().await;
        }
    });
    election
}

async fn asked(store: &Arc<dyn Store>) -> usize {
    let history = store.events(EventQuery::default()).await.unwrap().value;
    history.iter().filter(|event| event.kind == EventKind::TransferRequested).count()
}

async fn until_led_by(election: &Election, node: &str) -> Term {
    soon(async {
        loop {
            match election.leader().await.unwrap() {
                Some(leader) if leader.node.as_str() == node => return leader.term,
                _ => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_leader_of_lower_priority_is_asked_to_make_way_and_one_of_higher_priority_is_not() {
    let store = memory();
    let lesser = start(asks("lesser", 0), &store).await;
    let election = works(&lesser);
    until_led_by(&election, "lesser").await;
    let preferred = start(asks("preferred", 5), &store).await;
    works(&preferred);
    let term = until_led_by(&election, "preferred").await;
    assert_eq!((asked(&store).await, term), (1, Term::new(2)), "once, and the hand-over was one step");

    // The other stands again, and would have asked by the time that one more has waited as long, and asked.
    let third = start(asks("third", 9), &store).await;
    works(&third);
    let term = until_led_by(&election, "third").await;
    assert_eq!((asked(&store).await, term), (2, Term::new(3)));
}
