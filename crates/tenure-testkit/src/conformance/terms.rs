//! Terms strictly rise, whatever happens in between (S2).

use std::sync::Arc;

use tenure_core::Term;
use tenure_store::{Claim, Deletion};

use super::cast::{Node, candidates, election, leading, read, waiting};
use super::fixture::Fixture;

fn assert_rising(terms: &[Term]) {
    assert!(terms.is_sorted_by(|earlier, later| earlier < later), "terms did not rise: {terms:?}");
}

/// The term outlives the lease, the session and the connection.
pub async fn they_rise_over_resign_close_and_reopening(fixture: Arc<Fixture>) {
    let mut terms = Vec::new();
    for round in 0..4 {
        let store = fixture.connect().await;
        let node = Node::open(&store, "a").await;
        terms.push(node.lead("reports").await);
        node.resign("reports").await;
        assert_eq!(read(&store, "reports").await.term, terms[terms.len() - 1], "resigning keeps the term");
        terms.push(node.lead("reports").await);
        node.close().await;
        assert_eq!(read(&store, "reports").await.term, terms[terms.len() - 1], "closing keeps the term");
        assert_eq!(terms.len(), 2 * (round + 1));
    }
    assert_rising(&terms);
}

/// A successor's term fences the retired leader.
pub async fn they_rise_over_takeover(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let mut leader = Node::open(&store, "n0").await;
    let mut terms = vec![leader.lead("reports").await];
    for round in 1..5 {
        let successor = Node::open(&store, &format!("n{round}")).await;
        let claim = successor.claim_over("reports", leader.stamp());
        terms.push(leading(successor.send(claim).await));
        leader = successor;
    }
    assert_rising(&terms);
}

/// An end consumes a term number, so it too is ordered among the grants.
pub async fn they_rise_over_deletion(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let mut terms = Vec::new();
    for _ in 0..3 {
        terms.push(node.lead("reports").await);
        node.resign("reports").await;
        let told = store.delete(election("reports"), false).await.expect("the store answers");
        assert_eq!(told.value, Deletion::Ended);
        terms.push(read(&store, "reports").await.ended);
    }
    terms.push(node.lead("reports").await);
    assert_rising(&terms);
}

/// A store that was restored hears of the terms that it has forgotten.
pub async fn they_rise_above_what_a_candidate_has_seen(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let above = Term::new(1_000);
    let first = leading(node.send(Claim { above, ..node.claim("reports") }).await);
    assert!(first > above);
    assert_eq!(read(&store, "reports").await.term, first);
    node.resign("reports").await;
    let second = leading(node.send(Claim { above: Term::new(7), ..node.claim("reports") }).await);
    assert!(second > first, "a lower term than the store's own lowers nothing");
}

/// The next grant is above it, whoever gets it.
pub async fn what_a_refused_candidate_has_seen_is_remembered(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, witness) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let term = leader.lead("reports").await;
    let above = Term::new(500);
    let seen = waiting(witness.send(Claim { above, ..witness.claim("reports") }).await);
    assert_eq!(seen.term, above);
    assert_eq!(seen.holder.map(|holder| holder.term), Some(term), "the grant in force keeps its term");
    assert_eq!(leader.lead("reports").await, term);

    witness.resign("reports").await;
    leader.resign("reports").await;
    assert_eq!(read(&store, "reports").await.term, above);
    assert!(leader.lead("reports").await > above);
}

/// Whoever may not claim yet can still tell.
pub async fn a_claim_that_only_tells_is_granted_nothing(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (witness, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let above = Term::new(40);
    let tells = Claim { above, tell_only: true, ..witness.claim("reports") };
    let seen = waiting(witness.send(tells).await);
    assert_eq!((seen.term, seen.holder), (above, None), "nobody leads by it");
    assert_eq!(candidates(&store, "reports").await, [""; 0], "nor does anybody stand by it");
    assert!(other.lead("reports").await > above);
}
