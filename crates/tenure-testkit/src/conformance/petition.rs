//! A leader can be asked from outside to make way. It alone frees its lease, and the first in line
//! comes next.

use std::sync::Arc;

use tenure_core::{NodeId, Petition};
use tenure_store::{EventKind, Petitioned, Store};

use super::cast::{Node, election, events, holder, read};
use super::fixture::Fixture;

async fn ask(store: &Arc<dyn Store>, to: Option<&str>) -> Petitioned {
    let to = to.map(|to| NodeId::new(to).expect("the suite uses good names"));
    store.petition(election("reports"), to).await.expect("the store answers").value
}

/// Nothing is recorded otherwise.
pub async fn it_needs_a_leader_and_a_successor_that_stands(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    assert_eq!(ask(&store, None).await, Petitioned::NobodyLeads);
    let leader = Node::open(&store, "a").await;
    leader.lead("reports").await;
    let history = events(&store, "reports").await;
    for nobody in ["nobody", "a"] {
        assert_eq!(ask(&store, Some(nobody)).await, Petitioned::NotStanding);
    }
    assert_eq!(read(&store, "reports").await.petition, None);
    assert_eq!(events(&store, "reports").await, history);
    leader.resign("reports").await;
    assert_eq!(ask(&store, None).await, Petitioned::NobodyLeads);
}

/// The leader hears of it with its renewal, and reads who is to succeed.
pub async fn it_is_noted_once_and_the_leader_is_told(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, successor) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let term = leader.lead("reports").await;
    successor.stand("reports").await;
    for _ in 0..2 {
        assert_eq!(ask(&store, Some("b")).await, Petitioned::Noted { leader: leader.id.clone(), term });
    }
    assert_eq!(leader.renew().await.notices, 1, "said twice, told once");
    let record = read(&store, "reports").await;
    assert_eq!(record.petition, Some(Petition { term, to: Some(successor.id.clone()) }));
    assert_eq!(record.holder.map(|holder| holder.node), Some(leader.id.clone()), "nobody is forced");
    let asked = |event: &&tenure_store::EventRecord| event.kind == EventKind::TransferRequested;
    let history = events(&store, "reports").await;
    assert_eq!(history.iter().filter(asked).count(), 1);
}

/// It may stand again at once, but does not win before the one that waited.
pub async fn a_leader_that_was_asked_makes_way_for_the_first_in_line(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, first) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let second = Node::open(&store, "c").await;
    let term = leader.lead("reports").await;
    first.stand("reports").await;
    second.stand("reports").await;
    ask(&store, None).await;
    leader.resign("reports").await;
    assert_eq!(holder(&store, "reports").await.map(|holder| holder.node), Some(first.id.clone()));
    leader.stand("reports").await;
    second.stand("reports").await;
    assert!(first.lead("reports").await > term);
}

/// The next leader has nothing to do with what the last one was asked.
pub async fn it_binds_only_the_term_that_was_asked(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let asked = leader.lead("reports").await;
    ask(&store, None).await;
    leader.resign("reports").await;
    let term = leader.lead("reports").await;
    other.stand("reports").await;
    let petition = read(&store, "reports").await.petition;
    assert!(petition.is_none_or(|petition| petition.term == asked && asked < term));
}
