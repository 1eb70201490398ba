//! News between stores on one file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use crate::common::{Place, claiming, name, open, place, resigning, win};
use futures_util::StreamExt;
use tenure_core::{Namespace, NodeId, SessionId, Stamp};
use tenure_sqlite::SqliteStore;
use tenure_store::{Hint, Hints, Options, Store};
use tenure_testkit::patience::HANG;

/// The next hint about elections, whomever it names.
async fn next(hints: &mut Hints) -> Option<Hint> {
    next_naming(hints).await.map(|hint| match hint.election() {
        Some(election) => Hint::Election(election.clone()),
        None => hint,
    })
}

async fn next_naming(hints: &mut Hints) -> Option<Hint> {
    loop {
        let hint = tokio::time::timeout(HANG, hints.next()).await.expect("no hint came");
        if hint != Some(Hint::Nodes) {
            return hint;
        }
    }
}

async fn silence(hints: &mut Hints) {
    let heard = tokio::time::timeout(Duration::from_millis(100), hints.next()).await;
    assert!(heard.is_err(), "{heard:?}");
}

/// Hears everything that was told before. What is told together comes in any order: so the second marker is told only
/// when the first has been heard.
async fn drain(hints: &mut Hints, store: &SqliteStore, node: SessionId) {
    for marker in ["first marker", "second marker"] {
        win(store, node, marker).await;
        while next(hints).await != about(marker) {}
    }
}

fn about(election: &str) -> Option<Hint> {
    Some(Hint::Election(name(election)))
}

fn signal(place: &Place) -> std::path::PathBuf {
    format!("{}-news", place.path.display()).into()
}

#[tokio::test]
async fn a_transition_reaches_another_store_on_the_file() {
    let place = place();
    let (here, there) = (place.store().await, place.store().await);
    let mut hints = there.news();
    let node = open(&here, 1).await;
    win(&here, node, "reports").await;
    assert_eq!(next(&mut hints).await, about("reports"));
    here.resign(resigning(node, "reports")).await.unwrap();
    assert_eq!(next(&mut hints).await, about("reports"));
    assert!(there.read(name("reports")).await.unwrap().value.holder.is_none());
}

#[tokio::test]
async fn leases_that_are_passed_on_by_one_close_are_news_for_their_successor_alone() {
    let place = place();
    let (here, there) = (place.store().await, place.store().await);
    let (leader, successor) = (open(&here, 1).await, open(&here, 2).await);
    for election in ["a", "b", "c"] {
        win(&here, leader, election).await;
    }
    for election in ["a", "b"] {
        here.claim(claiming(successor, election)).await.unwrap();
    }
    let mut hints = there.news();
    drain(&mut hints, &here, successor).await;
    here.close(leader, Default::default()).await.unwrap();
    let mut heard = vec![];
    for _ in 0..3 {
        heard.push(next_naming(&mut hints).await.unwrap());
    }
    heard.sort_by_key(|hint| hint.election().cloned());
    let node = NodeId::new("n2").unwrap();
    let named = |election| Hint::Named { election: name(election), node: node.clone() };
    assert_eq!(heard, [named("a"), named("b"), Hint::Election(name("c"))]);
}

#[tokio::test]
async fn what_is_no_transition_wakes_nobody() {
    let place = place();
    let (here, there) = (place.store().await, place.store().await);
    let (leader, candidate) = (open(&here, 1).await, open(&here, 2).await);
    win(&here, leader, "reports").await;
    let mut hints = there.news();
    drain(&mut hints, &here, leader).await;
    here.renew(leader, 2, 1).await.unwrap();
    here.claim(claiming(candidate, "reports")).await.unwrap();
    here.read(name("reports")).await.unwrap();
    // Nothing was told between the two.
    win(&here, leader, "after").await;
    assert_eq!(next(&mut hints).await, about("after"));
}

#[tokio::test]
async fn a_retired_session_is_news_in_every_election_that_it_led() {
    let place = place();
    let (here, there) = (place.store().await, place.store().await);
    let (old, new) = (open(&here, 1).await, open(&here, 2).await);
    let mut hints = there.news();
    for election in ["a", "b", "c"] {
        win(&here, old, election).await;
    }
    drain(&mut hints, &here, new).await;
    let mut claim = claiming(new, "a");
    claim.over = Some(Stamp { session: old, sequence: 1 });
    here.claim(claim).await.unwrap();
    let mut heard = vec![next(&mut hints).await, next(&mut hints).await, next(&mut hints).await];
    heard.sort_by_key(|hint| format!("{hint:?}"));
    assert_eq!(heard, [about("a"), about("b"), about("c")]);
}

#[tokio::test]
async fn another_namespace_is_no_news() {
    let place = place();
    let blue = Options { namespace: Namespace::new("blue").unwrap(), ..Options::default() };
    let there = tenure_sqlite::SqliteStore::open(&place.path, blue).await.unwrap();
    let here = place.store().await;
    let mut hints = there.news();
    let node = open(&here, 1).await;
    win(&here, node, "reports").await;
    silence(&mut hints).await;
}

#[tokio::test]
async fn a_signal_file_that_was_deleted_or_replaced_is_watched_again() {
    let place = place();
    let (here, there) = (place.store().await, place.store().await);
    let node = open(&here, 1).await;
    let mut hints = there.news();

    std::fs::remove_file(signal(&place)).unwrap();
    assert_eq!(next(&mut hints).await, Some(Hint::All));
    win(&here, node, "after deletion").await;
    assert_eq!(next_election(&mut hints).await, about("after deletion"));

    std::fs::write(place.dir.path().join("else"), "").unwrap();
    std::fs::rename(place.dir.path().join("else"), signal(&place)).unwrap();
    assert_eq!(next(&mut hints).await, Some(Hint::All));
    win(&here, node, "after replacement").await;
    assert_eq!(next_election(&mut hints).await, about("after replacement"));
}

/// Both stores repair the file, so that some more general hints may come first.
async fn next_election(hints: &mut Hints) -> Option<Hint> {
    loop {
        match next(hints).await {
            Some(Hint::All) => {}
            hint => return hint,
        }
    }
}

#[tokio::test]
async fn the_hints_end_with_the_store() {
    let place = place();
    let store = place.store().await;
    let mut hints = store.news();
    drop(store);
    assert_eq!(next(&mut hints).await, None);
}
