//! What the verbs cost, and what the history keeps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;
use crate::common::{claiming, name, open, place, resigning, win};
use futures_util::future::try_join_all;
use tenure_core::{MOST_TOLD, Stamp, Standing};
use tenure_sqlite::SqliteStore;
use tenure_store::{EventKind, EventQuery, Options, Retention, Store};
use tenure_testkit::patient::patient;

/// How many pages the log holds. Every commit that changes something appends at least one.
fn log_pages(place: &common::Place) -> u64 {
    let log = std::fs::metadata(format!("{}-wal", place.path.display())).unwrap().len();
    log.saturating_sub(32) / (4096 + 24)
}

#[tokio::test]
async fn a_renewal_is_one_page_however_many_leases_hang_from_the_session() {
    for leases in [1, 1_000] {
        let place = place();
        let store = place.store().await;
        let node = open(&store, 1).await;
        for number in 0..leases {
            win(&store, node, &format!("e{number}")).await;
        }
        // An empty log, so that growth is seen.
        place.by_hand().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        for sequence in 2..12 {
            store.renew(node, sequence, 1).await.unwrap();
        }
        assert_eq!(log_pages(&place), 10, "ten renewals with {leases} leases");
    }
}

#[tokio::test]
async fn a_renewal_tells_of_so_many_elections_at_most_and_is_one_page_nevertheless() {
    let place = place();
    let store = place.store().await;
    let (leader, candidate) = (open(&store, 1).await, open(&store, 2).await);
    let names = || (0..=MOST_TOLD).map(|number| format!("e{number}"));
    for node in [leader, candidate] {
        let claims = names().map(|election| store.claim(claiming(node, &election)));
        try_join_all(claims).await.unwrap();
    }
    place.by_hand().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let told = store.renew(candidate, 2, 1).await.unwrap().value.waits_for;
    assert_eq!(log_pages(&place), 1);
    let expected: Vec<_> = names().map(|election| name(&election)).take(MOST_TOLD).collect();
    assert_eq!(told.iter().map(|(election, _)| election.clone()).collect::<Vec<_>>(), expected);
    assert!(told.iter().all(|(_, record)| record.holder.is_some()));
}

#[tokio::test]
async fn asking_again_writes_nothing() {
    let place = place();
    let store = place.store().await;
    let (leader, candidate) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, leader, "reports").await;
    store.claim(claiming(candidate, "reports")).await.unwrap();
    place.by_hand().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    for _ in 0..10 {
        assert!(matches!(
            store.claim(claiming(candidate, "reports")).await.unwrap().value,
            Standing::Waiting { .. }
        ));
        win(&store, leader, "reports").await;
        store.close(common::session(99), Default::default()).await.unwrap();
    }
    assert_eq!(log_pages(&place), 0);
}

#[tokio::test]
async fn retiring_a_session_frees_all_its_leases_and_tells_each_loss_once() {
    let place = place();
    let store = place.store().await;
    let (old, new) = (open(&store, 1).await, open(&store, 2).await);
    for number in 0..50 {
        win(&store, old, &format!("e{number:02}")).await;
    }
    let mut claim = claiming(new, "e00");
    claim.over = Some(Stamp { session: old, sequence: 1 });
    store.claim(claim).await.unwrap();
    for number in 1..50 {
        win(&store, new, &format!("e{number:02}")).await;
    }
    for number in 0..50 {
        let query = EventQuery { election: Some(name(&format!("e{number:02}"))), ..EventQuery::default() };
        let events = store.events(query).await.unwrap().value;
        let told: Vec<_> =
            events.iter().map(|event| (event.sequence, event.kind, event.term.number())).collect();
        assert_eq!(
            told,
            [
                (1, EventKind::ElectionStarted, 0),
                (2, EventKind::LeaderElected, 1),
                (3, EventKind::LeaderLost, 1),
                (4, EventKind::LeaderElected, 2),
                (5, EventKind::LeaderChanged, 2),
            ]
        );
        assert!(events[2].data.starts_with(r#"{"reason":"lapsed","silent_ms":"#), "{}", events[2].data);
    }
}

#[tokio::test]
async fn the_history_keeps_the_newest_and_counts_on() {
    let place = place();
    let options = Options { retention: Retention { events: 3 }, ..Options::default() };
    let store = SqliteStore::open(&place.path, options).await.unwrap();
    let node = open(&store, 1).await;
    for attempt in 0..20 {
        let mut claim = claiming(node, "reports");
        claim.attempt = attempt * 2 + 1;
        store.claim(claim).await.unwrap();
        let mut resign = resigning(node, "reports");
        resign.attempt = attempt * 2 + 2;
        store.resign(resign).await.unwrap();
        store.claim(claiming_other(node, attempt)).await.unwrap();
    }
    let all = EventQuery { election: Some(name("reports")), ..EventQuery::default() };
    let sequences: Vec<_> =
        store.events(all).await.unwrap().value.iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, [39, 40, 41], "started, then twenty grants and resignations");
}

/// Another election, whose history must not count.
fn claiming_other(node: tenure_core::SessionId, attempt: u64) -> tenure_store::Claim {
    tenure_store::Claim { attempt: attempt * 2 + 2, ..claiming(node, "other") }
}

#[tokio::test]
async fn the_last_transition_is_kept_whole_and_events_of_nodes_are_trimmed_too() {
    let place = place();
    let options = Options { retention: Retention { events: 1 }, ..Options::default() };
    let store = SqliteStore::open(&place.path, options).await.unwrap();
    for number in 1..=5 {
        open(&store, number).await;
    }
    win(&store, common::session(1), "reports").await;
    let mut claim = claiming(common::session(2), "reports");
    claim.over = Some(Stamp { session: common::session(1), sequence: 1 });
    store.claim(claim).await.unwrap();
    let events = store.events(EventQuery::default()).await.unwrap().value;
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(
        kinds,
        [EventKind::LeaderLost, EventKind::NodeExpired, EventKind::LeaderElected, EventKind::LeaderChanged]
    );
}

#[test]
fn terms_of_rival_stores_on_one_file_are_granted_once_each() {
    let place = std::sync::Arc::new(place());
    let rivals: Vec<_> = (1..=4)
        .map(|number| {
            let place = std::sync::Arc::clone(&place);
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(contend(&place, number))
            })
        })
        .collect();
    let mut terms: Vec<u64> = rivals.into_iter().flat_map(|rival| rival.join().unwrap()).collect();
    let granted = terms.len();
    terms.sort_unstable();
    terms.dedup();
    assert_eq!(terms.len(), granted, "no term twice");
    assert_eq!(terms.last().copied(), u64::try_from(granted).ok(), "and none left out");
    let events: Vec<i64> = place
        .by_hand()
        .prepare("SELECT sequence FROM tenure_events WHERE election IS NOT NULL ORDER BY id")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(
        events.iter().copied().zip(1..).all(|(sequence, place)| sequence == place),
        "no event is missing"
    );
}

/// Claims and resigns again and again, also where a busy machine lets the others keep the file locked for long; the terms
/// that were granted.
async fn contend(place: &common::Place, number: u128) -> Vec<u64> {
    let opened = place.store().await;
    let node = open(&opened, number).await;
    let store = patient(std::sync::Arc::new(opened));
    let mut terms = Vec::new();
    for attempt in (1..400).step_by(2) {
        let claim = tenure_store::Claim { attempt, ..claiming(node, "reports") };
        if let Standing::Leading { term } = store.claim(claim).await.unwrap().value {
            terms.push(term.number());
            let resign = tenure_store::Resign { attempt: attempt + 1, ..resigning(node, "reports") };
            store.resign(resign).await.unwrap();
        }
    }
    terms
}
