//! Fenced transactions: what is committed was written by the leader of that term.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use crate::common::{Place, claiming, open, opening, place, resigning, win};
use tenure_core::{Standing, Term};
use tenure_sqlite::rusqlite::{self, Transaction};
use tenure_sqlite::{SqliteStore, TransactionError};
use tenure_store::{Lease, Store, StoreError};
use tenure_testkit::patience::HANG;

async fn leader(place: &Place) -> (SqliteStore, Lease) {
    place.by_hand().execute_batch("CREATE TABLE ledger (entry TEXT UNIQUE)").unwrap();
    let store = place.store().await;
    let node = open(&store, 1).await;
    let lease = win(&store, node, "reports").await;
    (store, lease)
}

fn entries(place: &Place) -> i64 {
    place.by_hand().query_row("SELECT count(*) FROM ledger", [], |row| row.get(0)).unwrap()
}

fn write(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute("INSERT INTO ledger VALUES ('an entry')", []).map(drop)
}

#[tokio::test]
async fn the_leader_writes_and_gets_its_value() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let value = store.transaction(lease, || true, |tx| write(tx).map(|()| 42)).await.unwrap();
    assert_eq!((value, entries(&place)), (42, 1));
}

#[tokio::test]
async fn nobody_else_writes() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let rival = open(&store, 2).await;
    let wrong = [
        Lease { term: Term::new(2), ..lease.clone() },
        Lease { term: Term::new(u64::MAX), ..lease.clone() },
        Lease { session: rival, ..lease.clone() },
        Lease { election: common::name("other"), ..lease.clone() },
    ];
    for lease in wrong {
        let refused = store.transaction(lease, || true, write).await;
        assert!(matches!(refused, Err(TransactionError::NotHeld)), "{refused:?}");
    }
    let mut resign = resigning(lease.session, "reports");
    resign.term = Some(lease.term);
    store.resign(resign).await.unwrap();
    assert!(matches!(store.transaction(lease, || true, write).await, Err(TransactionError::NotHeld)));
    assert_eq!(entries(&place), 0);
}

#[tokio::test]
async fn a_deposed_leader_does_not_write_and_its_successor_does() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let successor = open(&store, 2).await;
    let mut claim = claiming(successor, "reports");
    claim.over = Some(tenure_core::Stamp { session: lease.session, sequence: 1 });
    let Standing::Leading { term } = store.claim(claim).await.unwrap().value else { panic!("not granted") };
    assert!(matches!(store.transaction(lease.clone(), || true, write).await, Err(TransactionError::NotHeld)));
    store.transaction(Lease { session: successor, term, ..lease }, || true, write).await.unwrap();
    assert_eq!(entries(&place), 1);
}

#[tokio::test]
async fn a_lease_that_lapses_by_the_leaders_own_clock_during_the_work_commits_nothing() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let asked = std::sync::atomic::AtomicU32::new(0);
    let still = move || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
    let outcome = store.transaction(lease, still, write).await;
    assert!(matches!(outcome, Err(TransactionError::NotHeld)), "{outcome:?}");
    assert_eq!(entries(&place), 0);
}

#[tokio::test]
async fn work_that_fails_writes_nothing_and_its_error_comes_back() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let outcome = store
        .transaction(
            lease,
            || true,
            |tx| {
                write(tx).unwrap();
                Err::<(), _>("no")
            },
        )
        .await;
    assert!(matches!(outcome, Err(TransactionError::Work("no"))));
    assert_eq!(entries(&place), 0);
}

#[tokio::test]
async fn work_that_panics_writes_nothing_and_the_store_works_on() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let store = std::sync::Arc::new(store);
    let (shared, panicking) = (std::sync::Arc::clone(&store), lease.clone());
    let task = tokio::spawn(async move {
        shared
            .transaction(
                panicking,
                || true,
                |tx| -> rusqlite::Result<()> {
                    write(tx)?;
                    panic!("the work's own message")
                },
            )
            .await
    });
    let panic = task.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the work's own message"));
    assert_eq!(entries(&place), 0);
    store.transaction(lease, || true, write).await.unwrap();
    assert_eq!(entries(&place), 1);
}

#[tokio::test]
async fn the_work_cannot_end_its_transaction_or_change_what_the_fence_stands_on() {
    let place = place();
    let (store, lease) = leader(&place).await;
    for sql in [
        "COMMIT",
        "ROLLBACK",
        "END",
        "BEGIN",
        "UPDATE tenure_sessions SET sequence = 99",
        "DELETE FROM TENURE_candidates",
        "INSERT INTO tenure_events (namespace, sequence, time, kind, term, data) VALUES ('', 0, '', '', 0, '')",
        "DROP TABLE tenure_events",
        "DROP VIEW tenure_leases",
        "ALTER TABLE tenure_meta ADD COLUMN x",
        "CREATE TRIGGER t AFTER UPDATE ON tenure_sessions BEGIN SELECT 1; END",
        "DROP TRIGGER tenure_elections_stay",
        "CREATE TEMP TABLE tenure_elections (x)",
        "CREATE TEMP VIEW tenure_elections AS SELECT 1",
        "ATTACH 'x.db' AS x",
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA foreign_keys = OFF",
    ] {
        let outcome = store.transaction(lease.clone(), || true, |tx| tx.execute_batch(sql)).await;
        let Err(TransactionError::Work(error)) = outcome else { panic!("{sql}: {outcome:?}") };
        assert!(error.to_string().contains("not authorized"), "{sql}: {error}");
    }
    let indirectly = store
        .transaction(
            lease,
            || true,
            |tx| {
                tx.execute_batch(
                "CREATE TRIGGER t AFTER INSERT ON ledger BEGIN UPDATE tenure_sessions SET sequence = 99; END",
            )?;
                write(tx)
            },
        )
        .await;
    assert!(matches!(indirectly, Err(TransactionError::Work(_))), "{indirectly:?}");
}

#[tokio::test]
async fn a_statement_that_rolls_back_by_itself_breaks_the_fence_and_nothing_after_it_is_written() {
    let place = place();
    let (store, lease) = leader(&place).await;
    store.transaction(lease.clone(), || true, write).await.unwrap();
    let outcome = store
        .transaction(
            lease.clone(),
            || true,
            |tx| -> rusqlite::Result<()> {
                assert!(tx.execute("INSERT OR ROLLBACK INTO ledger VALUES ('an entry')", []).is_err());
                // Outside of any transaction now, this would commit by itself.
                assert!(tx.execute("INSERT INTO ledger VALUES ('unfenced')", []).is_err());
                Ok(())
            },
        )
        .await;
    assert!(matches!(outcome, Err(TransactionError::Broken)), "{outcome:?}");
    assert_eq!(entries(&place), 1);
    store.transaction(lease, || true, |tx| tx.execute("DELETE FROM ledger", [])).await.unwrap();
}

#[tokio::test]
async fn savepoints_and_reading_tenures_tables_are_allowed() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let leader = store
        .transaction(
            lease,
            || true,
            |tx| {
                tx.execute_batch("SAVEPOINT a; INSERT INTO ledger VALUES ('x'); ROLLBACK TO a; RELEASE a")?;
                tx.execute_batch("SAVEPOINT b; INSERT INTO ledger VALUES ('y'); RELEASE b")?;
                tx.query_row("SELECT leader FROM tenure_leases", [], |row| row.get::<_, String>(0))
            },
        )
        .await
        .unwrap();
    assert_eq!((leader.as_str(), entries(&place)), ("n1", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_transaction_does_not_stop_reads_and_renewals_fail_without_losing_the_session() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let store = std::sync::Arc::new(store);
    let (shared, long) = (std::sync::Arc::clone(&store), lease.clone());
    let (begun, wait) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let task = tokio::spawn(async move {
        shared
            .transaction(
                long,
                || true,
                move |tx| {
                    let _ = begun.send(());
                    let _ = released.recv();
                    write(tx)
                },
            )
            .await
    });
    wait.await.unwrap();
    let read = tokio::time::timeout(HANG, store.read(lease.election.clone()));
    assert_eq!(read.await.expect("a read waits for no writer").unwrap().value.term, lease.term);
    // The renewal waits for the lock, not behind the work in a queue: it is refused while the work goes on.
    let refused = tokio::time::timeout(HANG, store.renew(lease.session, 2, 1)).await.expect("it is answered");
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    release.send(()).unwrap();
    task.await.unwrap().unwrap();
    store.renew(lease.session, 3, 2).await.unwrap();
}

#[tokio::test]
async fn a_dropped_transaction_commits_nothing() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let (begun, inside) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let work = move |tx: &Transaction<'_>| {
        let _ = begun.send(());
        let _ = released.recv();
        write(tx)
    };
    let transaction = store.transaction(lease.clone(), || true, work);
    tokio::select! {
        _ = transaction => panic!("it waits for us"),
        begun = inside => begun.unwrap(),
    }
    release.send(()).unwrap();
    // Waits its turn behind the dropped one.
    store.transaction(lease, || true, |_| Ok::<_, rusqlite::Error>(())).await.unwrap();
    assert_eq!(entries(&place), 0);
}

#[tokio::test]
async fn a_restarted_process_does_not_inherit_the_fence() {
    let place = place();
    let (store, lease) = leader(&place).await;
    let mut restart = opening(1);
    restart.session = common::session(9);
    restart.supersedes = Some(lease.session);
    store.open(restart).await.unwrap();
    assert!(matches!(store.transaction(lease, || true, write).await, Err(TransactionError::NotHeld)));
}
