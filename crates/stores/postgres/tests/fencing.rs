//! Fenced transactions: what is committed was written by the leader of that term.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure::{Election, Leadership, Node, TransactionError};
use tenure_postgres::tokio_postgres::{Client, Error, NoTls, Transaction};
use tenure_store::TransactionError as Fenced;
use tenure_testkit::server::Postgres;

/// Longer than anything here takes, on any machine.
const HANG: Duration = Duration::from_secs(30);

/// A server with a table of the application's own, and a connection to look at it.
async fn server() -> (Postgres, Client) {
    let server = Postgres::start();
    let (client, connection) = tenure_postgres::tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE ledger (entry text)").await.unwrap();
    (server, client)
}

async fn candidate(server: &Postgres, id: &str) -> Election {
    let store = tenure::connect(server.url()).await.unwrap();
    let node = Node::builder(id).ttl(Duration::from_secs(60)).start(store).await.unwrap();
    node.election("reports").unwrap()
}

async fn entries(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM ledger", &[]).await.unwrap().get(0)
}

async fn write(transaction: &Transaction<'_>) -> Result<u64, Error> {
    transaction.execute("INSERT INTO ledger VALUES ('an entry')", &[]).await
}

#[tokio::test]
async fn the_leader_writes_and_gets_its_value() {
    let (server, client) = server().await;
    let leadership = candidate(&server, "a").await.elected().await.unwrap();
    for _ in 0..2 {
        assert_eq!(leadership.postgres_transaction(write).await.unwrap(), 1);
    }
    assert_eq!(entries(&client).await, 2);
}

#[tokio::test]
async fn whoever_leads_no_longer_writes_nothing() {
    let (server, client) = server().await;
    let leadership = candidate(&server, "a").await.elected().await.unwrap();
    let lease = leadership.lease();
    leadership.resign().await.unwrap();
    let refused = leadership.postgres_transaction(write).await;
    assert!(matches!(refused, Err(TransactionError::NotLeader(_))), "{refused:?}");
    // And if its own clock would still say yes, the database says no.
    let url = tenure_store::StoreUrl::parse(&server.url()).unwrap();
    let store = tenure_postgres::PostgresStore::connect(&url).await.unwrap();
    let refused = store.transaction(lease, || true, write).await;
    assert!(matches!(refused, Err(Fenced::NotHeld)), "{refused:?}");
    assert_eq!(entries(&client).await, 0);
}

#[tokio::test]
async fn work_that_fails_writes_nothing_and_its_error_comes_back() {
    let (server, client) = server().await;
    let leadership = candidate(&server, "a").await.elected().await.unwrap();
    let outcome = leadership
        .postgres_transaction(async |transaction| {
            write(transaction).await.unwrap();
            Err::<(), _>("no paper")
        })
        .await;
    assert!(matches!(outcome, Err(TransactionError::Store(Fenced::Work("no paper")))), "{outcome:?}");
    assert_eq!(entries(&client).await, 0);
    leadership.postgres_transaction(write).await.unwrap();
    assert_eq!(entries(&client).await, 1, "the store works on");
}

#[tokio::test]
async fn work_that_ends_its_own_transaction_is_told_so() {
    let (server, _client) = server().await;
    let leadership = candidate(&server, "a").await.elected().await.unwrap();
    for end in ["COMMIT", "ROLLBACK"] {
        let outcome =
            leadership.postgres_transaction(async |transaction| transaction.batch_execute(end).await).await;
        assert!(matches!(outcome, Err(TransactionError::Store(Fenced::Broken))), "{end}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_dropped_transaction_commits_nothing() {
    let (server, client) = server().await;
    let leadership = candidate(&server, "a").await.elected().await.unwrap();
    let began = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&began);
    let work = leadership.postgres_transaction(async move |transaction: &Transaction<'_>| {
        write(transaction).await?;
        seen.store(true, Ordering::Relaxed);
        std::future::pending::<Result<(), Error>>().await
    });
    tokio::select! {
        _ = work => unreachable!("it waits for ever"),
        () = until(|| began.load(Ordering::Relaxed)) => {}
    }
    assert_eq!(entries(&client).await, 0);
    leadership.postgres_transaction(write).await.unwrap();
    assert_eq!(entries(&client).await, 1);
}

/// The point of it: between the check and the commit, nobody else can be elected.
#[tokio::test]
async fn a_successor_is_not_granted_the_lease_while_the_work_runs() {
    let (server, client) = server().await;
    let leadership = candidate(&server, "a").await.elected().await.unwrap();
    let (began, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
    let work = tokio::spawn({
        let (leadership, began, go_on) = (leadership.clone(), Arc::clone(&began), Arc::clone(&go_on));
        async move {
            leadership
                .postgres_transaction(async |transaction| {
                    began.store(true, Ordering::Relaxed);
                    go_on.notified().await;
                    write(transaction).await
                })
                .await
        }
    });
    until(|| began.load(Ordering::Relaxed)).await;
    // Somebody ends the session from outside, as a rival would that found it silent.
    let ends = "SELECT tenure.close('default', 100, (SELECT id FROM tenure.sessions WHERE node = 'a'))";
    let blocked = client.batch_execute(ends).await.unwrap_err();
    assert!(blocked.to_string().contains("db error"), "{blocked}");
    assert_eq!(
        blocked.code().map(tenure_postgres::tokio_postgres::error::SqlState::code),
        Some("55P03"),
        "lock timeout"
    );
    go_on.notify_one();
    work.await.unwrap().unwrap();
    assert_eq!(entries(&client).await, 1);
    client.batch_execute(ends).await.unwrap();
}

/// A renewal does not wait for the work.
#[tokio::test]
async fn a_long_transaction_does_not_stop_renewals() {
    let (server, _client) = server().await;
    let store = tenure::connect(server.url()).await.unwrap();
    let node = Node::builder("a").ttl(Duration::from_millis(600)).start(store).await.unwrap();
    let leadership: Leadership = node.election("reports").unwrap().elected().await.unwrap();
    let mut held = node.held();
    let outcome = leadership
        .postgres_transaction(async |transaction| {
            for _ in 0..6 {
                held.changed().await.unwrap();
            }
            write(transaction).await
        })
        .await;
    outcome.unwrap();
    assert!(leadership.check().is_ok());
}

async fn until(condition: impl Fn() -> bool) {
    let waits = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(HANG, waits).await.expect("this takes too long");
}
