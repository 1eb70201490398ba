//! The history is gapless and ordered per election, and recorded with the transition (S8).

use std::sync::Arc;

use serde_json::{Map, Value};
use tenure_core::Term;
use tenure_store::{EventKind, EventQuery, EventRecord, Limit, Options, Resign, Retention};

use super::cast::{Node, election, events, leading, read};
use super::fixture::Fixture;

/// Demands that a whole history makes sense: counted without a gap, one leader at a time, terms
/// rising, and every loss that of the leader.
pub(crate) fn assert_sound(history: &[EventRecord]) {
    let mut leader = None;
    let mut highest = Term::NONE;
    for (event, count) in history.iter().zip(1..) {
        assert_eq!(event.sequence, count, "the history has a gap: {history:#?}");
        let who = (event.node.clone(), event.term);
        match event.kind {
            EventKind::LeaderElected => {
                assert_eq!(leader, None, "elected while another leads: {history:#?}");
                assert!(event.term > highest, "a term did not rise: {history:#?}");
                highest = event.term;
                leader = Some(who);
            }
            EventKind::LeaderLost | EventKind::LeaderResigned => {
                assert_eq!(leader.take(), Some(who), "lost by one who did not lead: {history:#?}");
            }
            _ => {}
        }
    }
}

fn data(event: &EventRecord) -> Map<String, Value> {
    serde_json::from_str(&event.data).unwrap_or_else(|_| panic!("no JSON object: {}", event.data))
}

/// Every kind of transition of an election, once.
pub async fn a_walk_through_all_transitions_is_told_in_order(fixture: Arc<Fixture>) {
    use EventKind::*;
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    let (a, b) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    let first = a.lead("reports").await;
    b.stand("reports").await;
    let resign = Resign { to: Some(b.id.clone()), ..a.resignation("reports") };
    store.resign(resign).await.expect("the store answers");
    let second = b.lead("reports").await;
    let third = leading(a.send(a.claim_over("reports", b.stamp())).await);
    a.resign("reports").await;
    let fourth = a.lead("reports").await;
    a.close().await;
    store.delete(election("reports"), false).await.expect("the store answers");
    let ended = read(&store, "reports").await.ended;

    let history = events(&store, "reports").await;
    assert_sound(&history);
    let told: Vec<_> = history
        .iter()
        .map(|event| (event.kind, event.node.as_ref().map_or("", |node| node.as_str()), event.term))
        .collect();
    assert_eq!(
        told[1..],
        [
            (LeaderElected, "a", first),
            (TransferRequested, "a", first),
            (LeaderResigned, "a", first),
            (LeaderElected, "b", second),
            (LeaderChanged, "b", second),
            (LeaderLost, "b", second),
            (LeaderElected, "a", third),
            (LeaderChanged, "a", third),
            (LeaderResigned, "a", third),
            (LeaderElected, "a", fourth),
            (LeaderResigned, "a", fourth),
            (ElectionDeleted, "", ended),
        ]
    );
    assert_eq!((told[0].0, told[0].1), (ElectionStarted, "a"));
    assert_eq!(data(&history[2])["to"], "b");
    assert_eq!(data(&history[3])["to"], "b");
    assert_eq!(data(&history[5])["previous"], "a");
    assert_eq!(data(&history[5])["new"], "b");
    assert_eq!(data(&history[6])["reason"], "lapsed");
    assert!(!data(&history[9]).contains_key("to"), "nobody was named");
}

/// Each counts for itself; those of nodes count nothing.
pub async fn sequences_are_gapless_in_every_election(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let (a, b) = (Node::open(&here, "a").await, Node::open(&there, "b").await);
    for _ in 0..5 {
        for name in ["e1", "e2", "e3"] {
            a.lead(name).await;
            b.stand(name).await;
            a.resign(name).await;
            b.lead(name).await;
            b.resign(name).await;
        }
    }
    a.close().await;
    for name in ["e1", "e2", "e3"] {
        let history = events(&there, name).await;
        assert_sound(&history);
        assert!(history.iter().all(|event| event.election == Some(election(name))));
    }
    let all = here.events(EventQuery::default()).await.expect("the store answers").value;
    let of_nodes: Vec<_> = all.iter().filter(|event| event.election.is_none()).collect();
    let kinds: Vec<_> = of_nodes.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::NodeJoined, EventKind::NodeJoined, EventKind::NodeLeft]);
    assert!(of_nodes.iter().all(|event| event.sequence == 0 && event.term == Term::NONE));
    assert!(all.iter().all(|event| !event.data.is_empty() && data(event).len() < 10));
}

/// A reader that remembers the last id misses nothing and sees nothing twice.
pub async fn ids_rise_and_reading_goes_on_after_one(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    for _ in 0..4 {
        node.lead("e1").await;
        node.lead("e2").await;
        node.resign("e1").await;
        node.resign("e2").await;
    }
    let ask = async |query| store.events(query).await.expect("the store answers").value;
    let all = ask(EventQuery::default()).await;
    assert!(all.is_sorted_by(|earlier, later| earlier.id < later.id));
    let (mut paged, mut after) = (Vec::new(), 0);
    loop {
        let page = ask(EventQuery { election: None, after, limit: Some(Limit::Oldest(3)) }).await;
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        after = last.id;
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let query =
        EventQuery { election: Some(election("e2")), after: all[3].id, limit: Some(Limit::Oldest(2)) };
    let expected = all.iter().filter(|event| event.id > all[3].id && event.election == query.election);
    assert_eq!(ask(query.clone()).await, expected.take(2).cloned().collect::<Vec<_>>());
    assert!(ask(EventQuery { limit: Some(Limit::Oldest(0)), ..EventQuery::default() }).await.is_empty());
}

/// Oldest first, as always: of one election and of all.
pub async fn the_newest_can_be_asked_for(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    for name in ["e1", "e2", "e1"] {
        node.lead(name).await;
        node.resign(name).await;
    }
    let ask = async |election, limit, after| {
        let query = EventQuery { election, after, limit };
        store.events(query).await.expect("the store answers").value
    };
    for of in [None, Some(election("e1"))] {
        let all = ask(of.clone(), None, 0).await;
        let newest = ask(of.clone(), Some(Limit::Newest(3)), 0).await;
        assert_eq!(newest, all[all.len() - 3..]);
        let after = all[all.len() - 2].id;
        assert_eq!(ask(of.clone(), Some(Limit::Newest(3)), after).await, all[all.len() - 1..]);
        assert!(ask(of, Some(Limit::Newest(0)), 0).await.is_empty());
    }
}

/// Whoever sees a grant finds it in the history, over any connection.
pub async fn what_is_seen_is_already_recorded(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let node = Node::open(&here, "a").await;
    for _ in 0..10 {
        let term = node.lead("reports").await;
        let last = events(&there, "reports").await.pop().expect("there is a history");
        assert_eq!((last.kind, last.term), (EventKind::LeaderElected, term));
        node.resign("reports").await;
        let last = events(&there, "reports").await.pop().expect("there is a history");
        assert_eq!((last.kind, last.term), (EventKind::LeaderResigned, term));
    }
}

/// Per election, so that a busy one does not push out a quiet one; the count goes on.
pub async fn retention_keeps_the_newest_events(fixture: Arc<Fixture>) {
    let retention = Retention { events: 10 };
    let store = fixture.connect_with(Options { retention, ..Options::default() }).await;
    let quiet = Node::open(&store, "quiet").await;
    quiet.lead("quiet").await;
    let before = events(&store, "quiet").await;
    let busy = Node::open(&store, "busy").await;
    for _ in 0..20 {
        busy.lead("busy").await;
        busy.resign("busy").await;
    }
    let history = events(&store, "busy").await;
    let sequences: Vec<_> = history.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, (32..=41).collect::<Vec<_>>(), "the newest ten of 1 + 20 · 2");
    assert_eq!(events(&store, "quiet").await, before);

    for _ in 0..20 {
        Node::open(&store, "restless").await.close().await;
    }
    let all = store.events(EventQuery::default()).await.expect("the store answers").value;
    assert_eq!(all.iter().filter(|event| event.election.is_none()).count(), 10);
    assert_eq!(events(&store, "busy").await, history, "nodes do not push elections out");
}

/// However little is to be kept.
pub async fn retention_keeps_the_last_transition_whole(fixture: Arc<Fixture>) {
    let retention = Retention { events: 1 };
    let store = fixture.connect_with(Options { retention, ..Options::default() }).await;
    let (a, b) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    a.lead("reports").await;
    a.resign("reports").await;
    b.lead("reports").await;
    let kinds: Vec<_> = events(&store, "reports").await.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::LeaderElected, EventKind::LeaderChanged]);
    b.resign("reports").await;
    let kinds: Vec<_> = events(&store, "reports").await.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::LeaderResigned]);
}
