//! An election is ended without freeing anybody's lease, and its term lives on.

use std::sync::Arc;

use tenure_core::{Record, Standing, Term};
use tenure_store::{Claim, Deletion, EventKind, Store};

use super::cast::{Node, candidates, election, events, holder, leading, read, waiting};
use super::fixture::Fixture;

/// Each is a chance for a claim to come at the wrong moment.
const ROUNDS: usize = 50;

async fn delete(store: &Arc<dyn Store>, force: bool) -> Deletion {
    store.delete(election("reports"), force).await.expect("the store answers").value
}

/// Deleting creates nothing.
pub async fn an_unknown_election_is_absent(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    for force in [false, true] {
        assert_eq!(delete(&store, force).await, Deletion::Absent);
    }
    assert_eq!(read(&store, "reports").await, Record::default());
    assert!(store.elections().await.expect("the store answers").value.is_empty());
}

/// A repeated request finds nothing left to end.
pub async fn a_free_election_is_ended_once(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let term = node.lead("reports").await;
    node.resign("reports").await;
    assert_eq!(delete(&store, false).await, Deletion::Ended);
    let record = read(&store, "reports").await;
    assert!(record.ended > term && record.term == record.ended, "{record:?}");
    let last = events(&store, "reports").await.pop().expect("there is a history");
    assert_eq!((last.kind, last.term), (EventKind::ElectionDeleted, record.ended));

    for force in [false, true] {
        assert_eq!(delete(&store, force).await, Deletion::Absent);
    }
    assert_eq!(read(&store, "reports").await, record, "an absent election is left as it is");
}

/// Without it nothing changes.
pub async fn a_led_election_needs_force(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let term = leader.lead("reports").await;
    rival.stand("reports").await;
    let history = events(&store, "reports").await;
    assert_eq!(delete(&store, false).await, Deletion::Led);
    let record = read(&store, "reports").await;
    assert_eq!((record.term, record.ended), (term, Term::NONE));
    assert_eq!(candidates(&store, "reports").await, ["b"]);
    assert_eq!(events(&store, "reports").await, history);
    assert_eq!(leader.renew().await.notices, 0);
    assert_eq!(delete(&store, true).await, Deletion::Ended);
}

/// Only the holder knows when its work has stopped, so only it may free the lease.
pub async fn the_holder_of_an_ended_election_keeps_its_lease_and_is_told(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let term = leader.lead("reports").await;
    let before = leader.renew().await.notices;
    assert_eq!(delete(&store, true).await, Deletion::Ended);
    assert!(leader.renew().await.notices > before, "the holder is told with its next renewal");

    let record = read(&store, "reports").await;
    assert_eq!(record.holder.as_ref().map(|holder| holder.term), Some(term));
    assert!(record.ended > term);
    assert_eq!(delete(&store, true).await, Deletion::Absent, "it was ended before");
    let seen = rival.stand("reports").await;
    assert_eq!(seen.holder.map(|holder| holder.term), Some(term), "a held lease is not granted");
    let last = events(&store, "reports").await.pop().expect("there is a history");
    assert_eq!((last.kind, last.node), (EventKind::ElectionStarted, Some(rival.id.clone())));
    assert_eq!(delete(&store, true).await, Deletion::Ended, "what was stood for anew can be ended anew");
    let ended = read(&store, "reports").await.ended;
    assert!(ended > record.ended);

    leader.resign("reports").await;
    assert!(rival.lead("reports").await > ended);
}

/// It stood for what is no more; whoever comes later stands for what begins anew.
pub async fn a_candidate_that_saw_the_election_before_its_end_is_refused(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (early, late) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let seen = early.lead("reports").await;
    early.resign("reports").await;
    let still_on = Claim { since: Some(seen), ..early.claim("reports") };
    leading(early.send(still_on).await);
    early.resign("reports").await;
    delete(&store, false).await;

    let claim = Claim { since: Some(seen), ..early.claim("reports") };
    let refused = waiting(early.send(claim).await);
    assert!(refused.ended > seen && refused.holder.is_none(), "{refused:?}");
    assert!(candidates(&store, "reports").await.is_empty(), "it does not stand either");
    let claim = Claim { since: Some(refused.ended), ..late.claim("reports") };
    assert!(leading(late.send(claim).await) > refused.ended);
}

/// Its claim was not answered before, so it has not seen the election from before the end, and may lead after it.
pub async fn whoever_is_granted_the_lease_while_the_election_ends_keeps_it(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (leader, rival) = (Node::open(&here, "a").await, Node::open(&there, "b").await);
    let late = Node::open(&here, "c").await;
    for round in 0..ROUNDS {
        let name = format!("reports-{round}");
        leader.lead(&name).await;
        rival.stand(&name).await;
        let end = {
            let (here, name) = (Arc::clone(&here), election(&name));
            tokio::spawn(async move { here.delete(name, true).await })
        };
        leader.resign(&name).await;
        let standing = rival.send(rival.claim(&name)).await;
        end.await.expect("no end panics").expect("the store answers");
        if let Standing::Leading { term } = standing {
            let held = holder(&here, &name).await.map(|holder| (holder.node, holder.term));
            assert_eq!(held, Some((rival.id.clone(), term)), "round {round}");
            late.stand(&name).await;
        }
    }
}

/// And can be ended again.
pub async fn an_ended_election_starts_anew(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let mut ends = Vec::new();
    for _ in 0..3 {
        node.lead("reports").await;
        node.resign("reports").await;
        assert_eq!(delete(&store, false).await, Deletion::Ended);
        ends.push(read(&store, "reports").await.ended);
    }
    assert!(ends.is_sorted_by(|earlier, later| earlier < later), "{ends:?}");
    let history = events(&store, "reports").await;
    let starts = history.iter().filter(|event| event.kind == EventKind::ElectionStarted).count();
    assert_eq!(starts, 3);
}

/// Nobody is left waiting for what has ended.
pub async fn an_end_withdraws_the_candidates(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (leader, rival) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    leader.lead("reports").await;
    rival.stand("reports").await;
    leader.lead("billing").await;
    rival.stand("billing").await;
    assert_eq!(delete(&store, true).await, Deletion::Ended);
    assert!(candidates(&store, "reports").await.is_empty());
    assert_eq!(candidates(&store, "billing").await, ["b"], "another election is untouched");
    rival.renew().await;
}
