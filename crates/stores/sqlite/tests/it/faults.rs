//! What happens to a running store when its file or its disk fails.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use crate::common::{claiming, mount, mount_read_only_over, name, open, opening, place, session, win};
use tenure_core::Standing;
use tenure_sqlite::SqliteStore;
use tenure_store::{Options, Store, StoreError, clock};

fn unavailable<T: std::fmt::Debug>(reply: Result<T, StoreError>) -> String {
    match reply {
        Err(error @ StoreError::Unavailable(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lock_held_by_another_process_is_unavailable_and_leaves_the_store_usable() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    let other = place.by_hand();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert!(unavailable(store.renew(node, 2, 1).await).contains("this process itself holds its write lock"));
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(store.renew(node, 3, 2).await.unwrap().value.previous, 1);
}

#[tokio::test]
async fn a_lock_held_by_another_process_keeps_nobody_from_reading() {
    let place = place();
    let (store, there) = (place.store().await, place.store().await);
    let node = open(&store, 1).await;
    let other = place.by_hand();
    for round in 1..4 {
        // What a read finds is what was answered before it began.
        let election = format!("e{round}");
        let lease = win(&store, node, &election).await;
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        for reader in [&store, &there] {
            assert_eq!(reader.read(name(&election)).await.unwrap().value.term, lease.term);
            assert_eq!(reader.elections().await.unwrap().value.len(), round);
            assert_eq!(reader.nodes().await.unwrap().value.len(), 1);
            assert!(reader.candidates(name(&election)).await.unwrap().value.is_empty());
            assert!(!reader.events(Default::default()).await.unwrap().value.is_empty());
            assert!(!reader.examine().await.unwrap().value.is_empty());
        }
        other.execute_batch("COMMIT").unwrap();
    }
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_leaves_the_store_usable() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    let other = place.by_hand();
    for first in (2..).step_by(10) {
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        let locked = clock::now();
        for sequence in first..first + 8 {
            let renewal =
                tokio::time::timeout(Duration::from_millis(5), store.renew(node, sequence, 1)).await;
            assert!(!matches!(renewal, Ok(Ok(_))), "the file is locked");
        }
        // The first waits for the lock for a second. On a machine that stood still longer, another may have begun.
        let judged = clock::now().since(locked) < Duration::from_millis(900);
        other.execute_batch("COMMIT").unwrap();
        let previous = store.renew(node, first + 8, 1).await.unwrap().value.previous;
        if judged {
            assert!(
                previous <= first,
                "carried out though abandoned before it had begun: {previous} after {first}"
            );
            return;
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_nothing_changed() {
    let place = place();
    let Some(_disk) = mount(place.dir.path(), "size=1m") else { return };
    let store = place.store().await;
    let node = open(&store, 1).await;
    let lease = win(&store, node, "reports").await;

    let ballast = place.dir.path().join("ballast");
    let fill = |bytes: usize| std::fs::write(&ballast, vec![0; bytes]).is_err();
    assert!(fill(2 << 20), "the disk is full now");
    let mut refused = None;
    for number in 2..200 {
        // The log has some room of its own; then it is over.
        match store.claim(claiming(node, &format!("e{number}"))).await {
            Ok(_) => {}
            Err(error) => {
                refused = Some((number, error));
                break;
            }
        }
    }
    let (number, error) = refused.expect("a full disk takes no writes");
    assert!(unavailable::<()>(Err(error)).contains("the disk is full"));

    std::fs::remove_file(&ballast).unwrap();
    let record = store.read(name(&format!("e{number}"))).await.unwrap().value;
    assert_eq!(record, tenure_core::Record::default(), "nothing changed");
    assert_eq!(store.read(name("reports")).await.unwrap().value.term, lease.term);
    store.renew(node, 2, 1).await.unwrap();
    win(&store, node, &format!("e{number}")).await;
}

#[tokio::test]
async fn a_file_that_is_gone_is_unavailable_and_never_created_again() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(format!("{}{suffix}", place.path.display())).unwrap();
    }
    for _ in 0..2 {
        assert!(unavailable(store.renew(node, 2, 1).await).contains("is gone"));
        assert!(unavailable(store.read(name("reports")).await).contains("is gone"));
        assert!(unavailable(store.renew(node, 2, 2).await).contains("is gone"));
    }
    assert!(!place.path.exists());
}

#[tokio::test]
async fn a_replaced_file_is_another_store_and_its_sessions_are_unknown() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    win(&store, node, "reports").await;
    let before = store.read(name("reports")).await.unwrap().store;

    let other = place.dir.path().join("other.db");
    drop(SqliteStore::open(&other, Options::default()).await.unwrap());
    let copy = rusqlite_copy(&other, place.dir.path());
    for suffix in ["-wal", "-shm"] {
        std::fs::remove_file(format!("{}{suffix}", place.path.display())).unwrap();
    }
    std::fs::rename(copy, &place.path).unwrap();

    let after = store.read(name("reports")).await.unwrap();
    assert_ne!(after.store, before);
    assert_eq!(after.value, tenure_core::Record::default());
    assert!(matches!(store.renew(node, 2, 1).await, Err(StoreError::SessionLost)));
    // The store works on in the new file.
    let reopened = store.open(opening(2)).await.unwrap();
    assert_eq!(reopened.store, after.store);
    win(&store, session(2), "reports").await;
}

/// A copy of a database in one file.
fn rusqlite_copy(database: &std::path::Path, dir: &std::path::Path) -> std::path::PathBuf {
    let copy = dir.join("copy.db");
    tenure_sqlite::rusqlite::Connection::open(database)
        .unwrap()
        .execute("VACUUM INTO ?1", [copy.to_str().unwrap()])
        .unwrap();
    copy
}

#[tokio::test]
async fn the_same_history_in_another_file_is_another_store() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    let lease = win(&store, node, "reports").await;
    let before = store.read(name("reports")).await.unwrap().store;
    let copy = rusqlite_copy(&place.path, place.dir.path());
    for suffix in ["-wal", "-shm"] {
        std::fs::remove_file(format!("{}{suffix}", place.path.display())).unwrap();
    }
    std::fs::rename(copy, &place.path).unwrap();
    let after = store.read(name("reports")).await.unwrap();
    assert_eq!(after.value.term, lease.term);
    assert_ne!(after.store, before, "a copy put in place is a restore, and its nodes must notice");
}

#[tokio::test]
async fn a_file_replaced_by_something_else_is_misconfigured() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    for suffix in ["-wal", "-shm"] {
        std::fs::remove_file(format!("{}{suffix}", place.path.display())).unwrap();
    }
    let text = place.dir.path().join("text");
    std::fs::write(&text, "no database ".repeat(1_000)).unwrap();
    std::fs::rename(&text, &place.path).unwrap();
    assert!(matches!(store.renew(node, 2, 1).await, Err(StoreError::Misconfigured(_))));
}

#[tokio::test]
async fn dropped_tables_are_misconfigured_and_never_made_again_by_a_running_store() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    place
        .by_hand()
        .execute_batch("DROP VIEW tenure_leases; DROP VIEW tenure_nodes; DROP TABLE tenure_elections")
        .unwrap();
    let error = store.claim(claiming(node, "reports")).await.unwrap_err();
    assert!(matches!(error, StoreError::Misconfigured(_)), "{error:?}");
}

#[tokio::test]
async fn a_disk_that_becomes_read_only_is_unavailable_until_it_is_writable_again() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    let Some(cover) = mount_read_only_over(place.dir.path()) else { return };
    // From the second attempt on, a renewal uses a fresh connection, which sees the change.
    let problem = unavailable(store.renew(node, 2, 2).await);
    assert!(problem.contains("write access to the file and its directory"), "{problem}");
    assert!(unavailable(store.renew(node, 2, 3).await).contains("write access"));
    drop(cover);
    assert_eq!(store.renew(node, 3, 1).await.unwrap().value.previous, 1, "nothing had changed");
}

#[tokio::test]
async fn a_disk_that_goes_away_is_unavailable() {
    let place = place();
    let Some(disk) = mount(place.dir.path(), "size=4m") else { return };
    let store = place.store().await;
    let node = open(&store, 1).await;
    drop(disk);
    assert!(unavailable(store.renew(node, 2, 1).await).contains("is gone"));
}

#[tokio::test]
async fn a_number_beyond_what_sqlite_counts_is_refused_and_changes_nothing() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    let mut claim = claiming(node, "reports");
    claim.above = tenure_core::Term::new(u64::MAX);
    let error = store.claim(claim.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::Misconfigured(_)), "{error:?}");
    claim.above = tenure_core::Term::new(i64::MAX as u64);
    assert!(store.claim(claim).await.is_err());
    let Standing::Leading { term } = store.claim(claiming(node, "reports")).await.unwrap().value else {
        panic!("not granted")
    };
    assert_eq!(term.number(), 1);
}
