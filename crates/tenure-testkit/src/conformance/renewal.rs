//! A renewal keeps everything under its session, and the sequence never falls.

use std::sync::Arc;

use futures_util::future::try_join_all;
use tenure_core::{Age, Standing};
use tenure_store::StoreError;

use super::cast::{Node, holder};
use super::fixture::Fixture;

const ELECTIONS: usize = 1_000;

/// So that a node notices a store that was rolled back.
pub async fn it_tells_the_sequence_before(fixture: Arc<Fixture>) {
    let here = fixture.connect().await;
    let there = fixture.elsewhere(&here).await;
    let node = Node::open(&here, "a").await;
    for _ in 0..3 {
        let before = node.stamp().sequence;
        let renewal = node.renew().await;
        assert_eq!((renewal.previous, renewal.notices), (before, 0));
    }
    let before = node.stamp().sequence;
    let elsewhere = there.renew(node.session, before + 5, 2).await.expect("the store answers").value;
    assert_eq!(elsewhere.previous, before, "a second attempt over another connection counts on");
    assert_eq!(node.renew_as(before + 6).await.expect("the session is live").previous, before + 5);
}

/// So that a leader notices a store that was rolled back to before its grant.
pub async fn it_tells_how_many_terms_were_granted(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    assert_eq!(node.renew().await.grants, 0);
    node.lead("reports").await;
    node.lead("billing").await;
    assert_eq!(node.renew().await.grants, 2);
    let again = store.claim(node.claim("reports")).await.expect("the store answers").value;
    assert!(matches!(again, Standing::Leading { .. }), "{again:?}");
    assert_eq!(node.renew().await.grants, 2, "a repeated claim is no new grant");
}

/// It was sent before what the store has heard since.
pub async fn a_late_duplicate_does_not_lower_the_sequence(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    node.lead("reports").await;
    node.renew_as(10).await.expect("the session is live");
    for late in [3, 10, 9] {
        assert_eq!(node.renew_as(late).await.expect("the session is live").previous, 10);
        let seen = holder(&store, "reports").await.expect("the holder stays");
        assert_eq!(seen.pulse.stamp.sequence, 10);
    }
}

/// A renewal never opens a session.
pub async fn an_unknown_session_is_lost(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let nobody = Node::new(&store, "a");
    for _ in 0..2 {
        let renewal = nobody.renew_as(1).await;
        assert!(matches!(renewal, Err(StoreError::SessionLost)), "{renewal:?}");
    }
}

/// The cost of standing does not grow with the number of elections.
pub async fn one_renewal_keeps_a_thousand_elections(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let claims = (0..ELECTIONS).map(|number| store.claim(node.claim(&format!("e{number:04}"))));
    for told in try_join_all(claims).await.expect("the store answers") {
        assert!(matches!(told.value, Standing::Leading { .. }), "{told:?}");
    }
    let seen = node.stamp();
    node.renew().await;

    let elections = store.elections().await.expect("the store answers").value;
    assert_eq!(elections.len(), ELECTIONS);
    for (name, record) in elections {
        let holder = record.holder.unwrap_or_else(|| panic!("{name} lost its holder"));
        assert_eq!((holder.node, holder.pulse.stamp), (node.id.clone(), node.stamp()));
    }
    if fixture.candidates_judge().await {
        let rival = Node::open(&store, "b").await;
        let claim = rival.claim_over("e0999", seen);
        assert!(!matches!(rival.send(claim).await, Standing::Leading { .. }), "its pulse was renewed");
    }
}

/// So that a candidate need not ask. A store may leave that out, but what it tells is what a read would show.
pub async fn it_tells_candidates_how_their_elections_are(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, waits) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    leader.lead("e1").await;
    leader.lead("e2").await;
    waits.stand("e1").await;
    waits.stand("e2").await;
    waits.lead("e3").await;
    leader.renew().await;
    if !fixture.candidates_judge().await {
        assert_eq!(waits.renew().await.waits_for, [], "it knows by itself who waits behind whom");
        return;
    }
    let told = async |node: &Node| {
        let mut told = node.renew().await.waits_for;
        told.sort_by(|(left, _), (right, _)| left.cmp(right));
        told.into_iter().map(|(name, record)| (name.to_string(), record.holder.map(|holder| holder.pulse)))
    };
    for (name, pulse) in told(&waits).await {
        let pulse = pulse.expect("somebody leads");
        assert_eq!((pulse.stamp, pulse.ttl), (leader.stamp(), leader.opening().ttl), "{name}");
        let asked = holder(&store, &name).await.expect("somebody leads").pulse;
        assert!(matches!(
            (pulse.age, asked.age),
            (Age::Exact(_), Age::Exact(_))
                | (Age::Told { .. }, Age::Told { .. })
                | (Age::Unknown, Age::Unknown)
        ));
    }
    let names: Vec<_> = told(&waits).await.map(|(name, _)| name).collect();
    assert_eq!(names, ["e1", "e2"], "of what it leads there is nothing to tell");
    assert_eq!(told(&leader).await.count(), 0);

    waits.resign("e1").await;
    leader.resign("e2").await;
    assert_eq!(told(&waits).await.count(), 0, "it has withdrawn from one, and was granted the other");
}
