//! A user who uses Tenure, and can do nothing else.

use crate::common::{GRANTS, Place, by_hand, told, with_a_humble_user};
use tenure_store::StoreUrl;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{ask, calm, lead, open, soon, start, win};

/// Beside the whole conformance suite: nodes, their transactions and `tenure check`.
#[tokio::test]
async fn a_humble_user_lives_a_whole_life() {
    let place = Place::start();
    with_a_humble_user(&place).await;
    ask(&place, "CREATE TABLE ledger (entry VARCHAR(100))").await;
    ask(&place, "GRANT INSERT ON tenure.ledger TO app@'%'").await;
    let url = place.0.url_as("app");
    let node = start(calm("alpha"), &url).await;
    let leadership = lead(&node).await;
    let write = "INSERT INTO ledger VALUES ('an entry')";
    soon(Place::fenced(&leadership, write, std::future::ready(Ok(())))).await.unwrap();
    let store = Place::connect(StoreUrl::parse(&url).unwrap()).await.unwrap();
    let findings = soon(store.examine()).await.unwrap().value;
    assert!(findings.iter().any(|finding| finding.name == "guards" && finding.fine), "{findings:?}");
    // And a person with these rights may look.
    let mut person = by_hand(&url).await;
    assert_eq!(told(&mut person, "SELECT leader FROM tenure_leases").await.unwrap(), "alpha");
    assert_eq!(told(&mut person, "SELECT id FROM tenure_nodes").await.unwrap(), "alpha");
    assert_ne!(told(&mut person, "SELECT COUNT(*) FROM tenure_events").await.unwrap(), "0");
}

#[tokio::test]
async fn a_humble_user_can_neither_make_nor_break_anything() {
    let place = Place::start();
    with_a_humble_user(&place).await;
    let store = Place::connect(StoreUrl::parse(&place.0.url_as("app")).unwrap()).await.unwrap();
    let session = open(&store, 1).await;
    win(&store, session).await;
    let mut person = by_hand(&place.0.url_as("app")).await;
    for attempt in [
        "CREATE TABLE mine (x INT)",
        "CREATE DATABASE mine",
        "CREATE USER mine",
        "CREATE PROCEDURE mine() SELECT 1",
        "DROP TABLE tenure_candidates",
        "DROP VIEW tenure_leases",
        "DROP PROCEDURE tenure_begin",
        "DROP TRIGGER tenure_elections_keep",
        "TRUNCATE tenure_events",
        "SELECT * FROM tenure_sessions",
        "UPDATE tenure_meta SET version = 2",
        "UPDATE tenure_elections SET term = 9",
        "DELETE FROM tenure_events",
        "CALL tenure_end_session('00000000000000000000000000000001', 'lapsed', 1, @told)",
        "CALL tenure_tell('default', 'reports', 9, 'leader_elected', 'me', 9, '{}')",
        "SET GLOBAL read_only = 1",
    ] {
        let said = told(&mut person, attempt).await.expect_err(attempt);
        assert!(said.to_lowercase().contains("denied"), "{attempt}: {said}");
    }
    assert_eq!(ask(&place, "SELECT MAX(term) FROM {t}elections").await, "1");
}

#[test]
fn the_documentation_has_the_same_grants() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/stores/mysql.md");
    let page = std::fs::read_to_string(page).unwrap();
    for line in GRANTS.lines().filter(|line| line.starts_with("GRANT")) {
        assert!(page.contains(line), "{line}");
    }
}
