//! A free lease is granted to the first claim, and a held one to nobody else.

use std::sync::Arc;

use tenure_core::{Record, Term};
use tenure_store::StoreError;

use super::cast::{Node, TTL, candidates, events, holder, read, waiting};
use super::fixture::Fixture;

/// Reading creates nothing.
pub async fn nothing_is_known_of_an_election_that_nobody_stood_for(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    assert_eq!(read(&store, "reports").await, Record::default());
    assert!(candidates(&store, "reports").await.is_empty());
    assert!(events(&store, "reports").await.is_empty());
    assert!(store.elections().await.expect("the store answers").value.is_empty());
}

/// And every connection sees who has it.
pub async fn a_free_lease_is_granted_to_the_first_claim(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let node = Node::open(&here, "a").await;
    let term = node.lead("reports").await;
    assert!(term > Term::NONE);
    for store in [&here, &there] {
        let record = read(store, "reports").await;
        let holder = record.holder.expect("somebody leads");
        assert_eq!((&holder.node, holder.term, record.term), (&node.id, term, term));
        assert_eq!(holder.pulse.stamp, node.stamp());
        assert_eq!(record.ended, Term::NONE);
    }
    assert!(candidates(&here, "reports").await.is_empty(), "the holder is no candidate");
}

/// The refused one learns whom to time.
pub async fn a_held_lease_is_refused_and_its_pulse_is_seen(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (leader, rival) = (Node::open(&here, "a").await, Node::open(&there, "b").await);
    let term = leader.lead("reports").await;
    let seen = rival.stand("reports").await.holder.expect("the holder is seen");
    assert_eq!((&seen.node, seen.term), (&leader.id, term));
    assert_eq!((seen.pulse.stamp, seen.pulse.ttl), (leader.stamp(), TTL));

    leader.renew().await;
    let seen = rival.stand("reports").await.holder.expect("the holder is seen");
    assert_eq!((seen.term, seen.pulse.stamp), (term, leader.stamp()));
}

/// So it is safe to ask again after an unknown outcome.
pub async fn a_repeated_claim_changes_nothing(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let leader = Node::open(&here, "a").await;
    let claim = leader.claim("reports");
    let first = leader.send(claim.clone()).await;
    let record = read(&here, "reports").await;
    let history = events(&here, "reports").await;

    assert_eq!(leader.send(claim.clone()).await, first, "the very same request, twice");
    let elsewhere = fixture.elsewhere(&here).await;
    let over_another_connection = elsewhere.claim(claim).await.expect("the store answers").value;
    assert_eq!(over_another_connection, first);
    leader.lead("reports").await;

    let now = read(&there, "reports").await;
    assert_eq!(now.holder.map(|holder| holder.term), record.holder.map(|holder| holder.term));
    assert_eq!(now.term, record.term);
    assert_eq!(events(&there, "reports").await, history);
}

/// A claim hangs from a session.
pub async fn a_claim_without_a_session_is_lost(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let nobody = Node::new(&store, "a");
    let answer = store.claim(nobody.claim("reports")).await;
    assert!(matches!(answer, Err(StoreError::SessionLost)), "{answer:?}");
    assert_eq!(holder(&store, "reports").await, None);
}

/// Others see who stands; asking again does not double it.
pub async fn a_refused_claim_registers_its_candidate_once(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    leader.lead("reports").await;
    let claim = rival.claim("reports");
    waiting(rival.send(claim.clone()).await);
    waiting(rival.send(claim).await);
    rival.stand("reports").await;
    assert_eq!(candidates(&store, "reports").await, ["b"]);

    leader.resign("reports").await;
    rival.lead("reports").await;
    assert!(candidates(&store, "reports").await.is_empty(), "whoever leads is no candidate");
}
