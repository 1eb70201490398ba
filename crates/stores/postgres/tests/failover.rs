//! A replica that did not hear of everything is promoted.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

use std::time::Duration;

use rustix::process::Signal;
use tenure::{Election, Leadership, Node, Reason};
use tenure_postgres::tokio_postgres::{Client, NoTls};
use tenure_store::clock;
use tenure_testkit::server::Postgres;

const TTL: Duration = Duration::from_secs(2);
/// Longer than anything here takes, on any machine.
const HANG: Duration = Duration::from_secs(60);

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future).await.unwrap_or_else(|_| panic!("this takes too long: {what}"))
}

async fn client(server: &Postgres) -> Client {
    let (client, connection) = tenure_postgres::tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn candidate(hosts: &str, id: &str) -> (Node, Election) {
    let store =
        tenure::connect(format!("postgres://postgres@{hosts}/postgres?connect_timeout=1")).await.unwrap();
    let node = Node::builder(id).ttl(TTL).start(store).await.unwrap();
    let election = node.election("reports").unwrap();
    (node, election)
}

/// Waits until the replica has all that the primary has.
async fn caught_up(primary: &Client, replica: &Client) {
    let sent: String = primary.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap().get(0);
    let sql = format!("SELECT pg_last_wal_replay_lsn() >= '{sent}'::pg_lsn");
    soon("the replica follows", async {
        while !replica.query_one(&sql, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Rule 10: the leader steps down, candidates wait a full ttl from first sight, and the next term is above
/// the highest that anybody has seen; although the database has forgotten two of them.
#[tokio::test]
async fn a_promoted_replica_that_missed_terms_repeats_none_and_nobody_leads_too_early() {
    let primary = Postgres::start();
    // The schema must be there before it is copied.
    drop(tenure::connect(primary.url()).await.unwrap());
    let mut replica = primary.replica();
    let hosts = format!("{},{}", primary.host(), replica.host());
    let (_alpha, first) = candidate(&hosts, "alpha").await;
    let (beta, second) = candidate(&hosts, "beta").await;

    let leadership = first.elected().await.unwrap();
    assert_eq!(leadership.term().number(), 1);
    caught_up(&client(&primary).await, &client(&replica).await).await;
    // The stream is cut: the replica hears of no further term.
    replica.stop();
    leadership.resign().await.unwrap();
    for term in 2..=3 {
        let leadership = first.elected().await.unwrap();
        assert_eq!(leadership.term().number(), term);
        if term < 3 {
            leadership.resign().await.unwrap();
        } else {
            lost_and_regained(primary, &mut replica, leadership, &second).await;
            break;
        }
    }
    beta.close().await;
}

async fn lost_and_regained(
    mut primary: Postgres,
    replica: &mut Postgres,
    leadership: Leadership,
    second: &Election,
) {
    let rival = second.clone();
    let waits = tokio::spawn(async move { rival.elected().await });
    // It stands, so it has seen the third term.
    soon("the rival stands", async {
        while second.candidates().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    primary.signal(Signal::KILL);
    primary.stop();
    replica.launch();
    let promoting = clock::now();
    client(replica).await.batch_execute("SELECT pg_promote()").await.unwrap();
    let reason = soon("the leader steps down", leadership.lost()).await;
    assert!(
        matches!(
            reason,
            Reason::StoreChanged | Reason::SessionLost | Reason::StoreRolledBack | Reason::Lapsed
        ),
        "{reason}"
    );
    leadership.stopped();
    let next = soon("somebody leads again", waits).await.unwrap().unwrap();
    assert!(next.term().number() > 3, "term {} was granted before", next.term());
    let waited = clock::now().since(promoting);
    assert!(waited >= TTL, "only {waited:?} after it could be seen first: less than a ttl");
}

/// The address of a replica alone is no store.
#[tokio::test]
async fn a_replica_alone_is_refused_and_with_its_primary_beside_it_passed_over() {
    let primary = Postgres::start();
    drop(tenure::connect(primary.url()).await.unwrap());
    let replica = primary.replica();
    let refused = tenure::connect(replica.url()).await.err().unwrap().to_string();
    assert!(refused.contains("nothing changed"), "{refused}");
    let both = format!("{},{}", replica.host(), primary.host());
    let (_node, election) = candidate(&both, "alpha").await;
    assert_eq!(election.elected().await.unwrap().term().number(), 1);
}
