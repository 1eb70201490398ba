//! Fenced transactions: what is committed was written by the leader of that term.

use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure::{Leadership, TransactionError};
use tenure_store::{Cause, TransactionError as Fenced};

use super::SqlServer;
use super::stage::{ask, calm, connect, lead, soon, stand, start};

const WRITE: &str = "INSERT INTO ledger VALUES ('an entry')";

/// A server with a table of the application's own, and a leader.
async fn stage<S: SqlServer>() -> (S, Leadership) {
    let server = S::start();
    let leadership = lead(&start(calm("a"), &server.url()).await).await;
    ask(&server, "CREATE TABLE ledger (entry VARCHAR(100))").await;
    (server, leadership)
}

async fn write<S: SqlServer>(leadership: &Leadership) -> Result<(), TransactionError<String>> {
    soon(S::fenced(leadership, WRITE, ready(Ok(())))).await
}

async fn entries<S: SqlServer>(server: &S) -> String {
    ask(server, "SELECT COUNT(*) FROM ledger").await
}

async fn until(condition: &AtomicBool) {
    soon(async {
        while !condition.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

pub async fn the_leader_writes<S: SqlServer>() {
    let (server, leadership) = stage::<S>().await;
    for _ in 0..2 {
        write::<S>(&leadership).await.unwrap();
    }
    assert_eq!(entries(&server).await, "2");
}

pub async fn whoever_leads_no_longer_writes_nothing<S: SqlServer>() {
    let (server, leadership) = stage::<S>().await;
    let lease = leadership.lease();
    leadership.resign().await.unwrap();
    let refused = write::<S>(&leadership).await;
    assert!(matches!(refused, Err(TransactionError::NotLeader(_))), "{refused:?}");
    // And if its own clock would still say yes, the database says no.
    let store = connect(&server).await.unwrap();
    let refused = soon(S::fenced_on(&store, lease, WRITE)).await;
    assert!(matches!(refused, Err(Fenced::NotHeld)), "{refused:?}");
    assert_eq!(entries(&server).await, "0");
}

pub async fn work_that_fails_writes_nothing_and_its_error_comes_back<S: SqlServer>() {
    let (server, leadership) = stage::<S>().await;
    let fails = ready(Err(String::from("no paper")));
    let outcome = soon(S::fenced(&leadership, WRITE, fails)).await;
    assert!(
        matches!(&outcome, Err(TransactionError::Store(Fenced::Work(why))) if why == "no paper"),
        "{outcome:?}"
    );
    assert_eq!(entries(&server).await, "0");
    write::<S>(&leadership).await.unwrap();
    assert_eq!(entries(&server).await, "1", "the store works on");
}

pub async fn work_that_ends_its_own_transaction_is_told_so<S: SqlServer>() {
    let (_server, leadership) = stage::<S>().await;
    for end in ["COMMIT", "ROLLBACK"] {
        let outcome = soon(S::fenced(&leadership, end, ready(Ok(())))).await;
        assert!(matches!(outcome, Err(TransactionError::Store(Fenced::Broken))), "{end}: {outcome:?}");
    }
}

/// Begins a transaction that writes, and drops it before it ends.
async fn give_up<S: SqlServer>(leadership: &Leadership) {
    let began = AtomicBool::new(false);
    let work = S::fenced(leadership, WRITE, async {
        began.store(true, Ordering::Relaxed);
        pending().await
    });
    tokio::select! {
        _ = work => unreachable!("it waits for ever"),
        () = until(&began) => {}
    }
}

pub async fn a_dropped_transaction_commits_nothing<S: SqlServer>() {
    let (server, leadership) = stage::<S>().await;
    give_up::<S>(&leadership).await;
    assert_eq!(entries(&server).await, "0");
    write::<S>(&leadership).await.unwrap();
    assert_eq!(entries(&server).await, "1");
}

/// The lease's row is not locked any more, though its connection was never told to let go.
pub async fn work_that_was_given_up_keeps_no_successor_waiting<S: SqlServer>() {
    let (server, leadership) = stage::<S>().await;
    let successor = stand(&start(calm("b"), &server.url()).await);
    give_up::<S>(&leadership).await;
    soon(leadership.resign()).await.unwrap();
    assert_eq!(soon(successor).await.unwrap().term().number(), 2);
}

/// The point of it: between the check and the commit, nobody else can be elected.
pub async fn a_successor_is_not_granted_the_lease_while_the_work_runs<S: SqlServer>() {
    let (server, leadership) = stage::<S>().await;
    let (began, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let work = tokio::spawn({
        let (leadership, began, go_on) = (leadership.clone(), Arc::clone(&began), Arc::clone(&go_on));
        async move {
            let waits = async {
                began.store(true, Ordering::Relaxed);
                go_on.notified().await;
                Ok(())
            };
            S::fenced(&leadership, WRITE, waits).await
        }
    });
    until(&began).await;
    // Somebody ends the session from outside, as a rival would that found it silent.
    let store = connect(&server).await.unwrap();
    let blocked = soon(store.close(leadership.lease().session, Cause::Resigned)).await;
    assert!(matches!(blocked, Err(tenure_store::StoreError::Unavailable(_))), "{blocked:?}");
    go_on.notify_one();
    soon(work).await.unwrap().unwrap();
    assert_eq!(entries(&server).await, "1");
    soon(store.close(leadership.lease().session, Cause::Resigned)).await.unwrap();
}

/// A renewal does not wait for the work. (Which may be idle for no longer than the ttl.)
pub async fn a_long_transaction_does_not_stop_renewals<S: SqlServer>() {
    let server = S::start();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    ask(&server, "CREATE TABLE ledger (entry VARCHAR(100))").await;
    let mut held = node.held();
    let waits = async {
        for _ in 0..6 {
            held.changed().await.expect("the node is alive");
        }
        Ok(())
    };
    soon(S::fenced(&leadership, WRITE, waits)).await.unwrap();
    assert!(leadership.check().is_ok());
}
