//! A role that uses Tenure, and can do nothing else.
#![allow(missing_docs, reason = "the tests read as sentences")]

use std::time::Duration;

use crate::kit::{GRANTS, connect, number, person, with_a_humble_role};
use futures_util::StreamExt;
use tenure_core::{ElectionName, NodeId, Opening, SessionId, Standing};
use tenure_postgres::PostgresStore;
use tenure_store::{Claim, Deletion, EventQuery, NodeInfo, Open, Petitioned, Resign, Store};
use tenure_testkit::server::Postgres;
use tokio_postgres::error::SqlState;

fn nightly() -> ElectionName {
    ElectionName::new("nightly").unwrap()
}

async fn opens(store: &PostgresStore, id: &str, session: SessionId) {
    let node = NodeInfo::new(NodeId::new(id).unwrap(), "here");
    let ttl = Duration::from_secs(60);
    let open = Open { session, sequence: 1, ttl, node, supersedes: None, over: None };
    assert!(matches!(store.open(open).await.unwrap().value, Opening::Opened { .. }));
}

async fn claims(store: &PostgresStore, session: SessionId, attempt: u64) -> Standing {
    let claim = Claim::plain(session, nightly(), attempt);
    store.claim(claim).await.unwrap().value
}

#[tokio::test]
async fn a_humble_role_lives_a_whole_life() {
    let server = Postgres::start();
    with_a_humble_role(&server).await;
    let store = connect(&server.url_as("app")).await.unwrap();
    let mut news = store.news();
    let (alpha, beta) = (SessionId::from_u128(1), SessionId::from_u128(2));
    opens(&store, "alpha", alpha).await;
    opens(&store, "beta", beta).await;
    assert!(matches!(claims(&store, alpha, 1).await, Standing::Leading { .. }));
    assert!(matches!(claims(&store, beta, 1).await, Standing::Waiting { .. }));
    store.renew(alpha, 2, 1).await.unwrap();
    let petition = store.petition(nightly(), None).await.unwrap().value;
    assert!(matches!(petition, Petitioned::Noted { .. }));
    assert_eq!(store.candidates(nightly()).await.unwrap().value.len(), 1);
    let resign = Resign {
        session: alpha,
        election: nightly(),
        attempt: 2,
        term: None,
        to: None,
        cause: Default::default(),
    };
    store.resign(resign).await.unwrap();
    assert!(matches!(claims(&store, beta, 2).await, Standing::Leading { .. }));
    assert_eq!(store.read(nightly()).await.unwrap().value.term.number(), 2);
    store.close(beta, Default::default()).await.unwrap();
    assert_eq!(store.delete(nightly(), false).await.unwrap().value, Deletion::Ended);
    assert_eq!(store.elections().await.unwrap().value.len(), 1);
    assert_eq!(store.nodes().await.unwrap().value.len(), 2);
    assert!(store.events(EventQuery::default()).await.unwrap().value.len() > 5);
    assert!(!store.examine().await.unwrap().value.is_empty());
    assert!(news.next().await.is_some());
    // And a person with this role may look.
    let person = person(&server.url_as("app")).await;
    assert_eq!(number(&person, "SELECT count(*) FROM tenure.leases").await, 1);
    assert_eq!(number(&person, "SELECT count(*) FROM tenure.nodes").await, 2);
}

#[tokio::test]
async fn a_humble_role_can_neither_make_nor_break_anything() {
    let server = Postgres::start();
    let owner = with_a_humble_role(&server).await;
    let store = connect(&server.url_as("app")).await.unwrap();
    opens(&store, "alpha", SessionId::from_u128(1)).await;
    claims(&store, SessionId::from_u128(1), 1).await;
    let person = person(&server.url_as("app")).await;
    for attempt in [
        "CREATE TABLE tenure.mine (x int)",
        "CREATE TABLE public.mine (x int)",
        "CREATE SCHEMA mine",
        "CREATE DATABASE mine",
        "CREATE ROLE mine",
        "CREATE FUNCTION tenure.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DROP SCHEMA tenure CASCADE",
        "DROP TABLE tenure.elections CASCADE",
        "DROP VIEW tenure.leases",
        "DROP FUNCTION tenure.careful()",
        "DROP TRIGGER terms_rise ON tenure.elections",
        "ALTER TABLE tenure.elections DISABLE TRIGGER ALL",
        "TRUNCATE tenure.elections, tenure.sessions, tenure.candidates",
        "TRUNCATE tenure.events",
        "SET session_replication_role = replica",
        "UPDATE tenure.meta SET version = 2",
        "UPDATE tenure.events SET term = 9",
        "DELETE FROM tenure.elections",
    ] {
        let error = person.batch_execute(attempt).await.expect_err(attempt);
        assert_eq!(*error.code().unwrap(), SqlState::INSUFFICIENT_PRIVILEGE, "{attempt}: {error}");
    }
    for attempt in [
        "UPDATE tenure.elections SET term = term - 1",
        "UPDATE tenure.elections SET floor = floor - 1",
        "DELETE FROM tenure.sessions",
    ] {
        let error = person.batch_execute(attempt).await.expect_err(attempt);
        assert_eq!(*error.code().unwrap(), SqlState::CHECK_VIOLATION, "{attempt}: {error}");
    }
    assert_eq!(number(&owner, "SELECT max(term) FROM tenure.elections").await, 1);
}

#[test]
fn the_documentation_has_the_same_grants() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/stores/postgres.md");
    let page = std::fs::read_to_string(page).unwrap();
    for line in GRANTS.lines().filter(|line| line.starts_with("GRANT")) {
        assert!(page.contains(line), "{line}");
    }
}
