//! What people see with `sqlite3`, and what they cannot break with it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use crate::common::{claiming, name, open, place, resigning, win};
use rusqlite::Connection;
use tenure_sqlite::rusqlite;
use tenure_store::Store;

fn columns(connection: &Connection, view: &str) -> Vec<String> {
    let statement = connection.prepare(&format!("SELECT * FROM {view}")).unwrap();
    statement.column_names().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_views_have_the_columns_that_are_documented() {
    let place = place();
    let _store = place.store().await;
    let connection = place.by_hand();
    assert_eq!(
        columns(&connection, "tenure_leases").join(" "),
        "election leader term state acquired_at renewed_at expires_at hostname address namespace"
    );
    assert_eq!(
        columns(&connection, "tenure_nodes").join(" "),
        "node state leads hostname address pid opened_at renewed_at expires_at version labels session namespace \
         problem unhealthy_since"
    );
}

#[tokio::test]
async fn the_command_line_shows_who_leads() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    win(&store, node, "reports").await;
    store.claim(claiming(open(&store, 2).await, "reports")).await.unwrap();
    let query = "SELECT election, leader, term, state, expires_at > renewed_at FROM tenure_leases; \
                 SELECT node, state, leads FROM tenure_nodes ORDER BY node;";
    let Ok(shown) = Command::new("sqlite3").arg(&place.path).arg(query).output() else {
        eprintln!("skipped: `sqlite3` is not installed");
        return;
    };
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert_eq!(shown.lines().collect::<Vec<_>>(), ["reports|n1|1|held|1", "n1|live|1", "n2|live|0"]);
}

#[tokio::test]
async fn a_lease_is_shown_as_held_free_or_deleted() {
    let place = place();
    let store = place.store().await;
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    let state = || -> String {
        let sql = "SELECT state || coalesce(' by ' || leader, '') FROM tenure_leases";
        place.by_hand().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    win(&store, first, "reports").await;
    assert_eq!(state(), "held by n1");
    store.claim(claiming(second, "reports")).await.unwrap();
    let mut resign = resigning(first, "reports");
    resign.to = Some(tenure_core::NodeId::new("n2").unwrap());
    store.resign(resign).await.unwrap();
    assert_eq!(state(), "held by n2");
    store.resign(resigning(second, "reports")).await.unwrap();
    assert_eq!(state(), "free");
    store.delete(name("reports"), false).await.unwrap();
    assert_eq!(state(), "deleted");
}

#[tokio::test]
async fn hand_edits_that_would_break_a_promise_are_refused() {
    let place = place();
    let store = place.store().await;
    let node = open(&store, 1).await;
    open(&store, 2).await;
    win(&store, node, "reports").await;
    let connection = place.by_hand();
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap(); // as in the sqlite3 shell
    for edit in [
        "DELETE FROM tenure_elections",
        "UPDATE tenure_elections SET term = 0",
        "UPDATE tenure_elections SET floor = floor - 1",
        "UPDATE tenure_elections SET election = 'other'",
        "UPDATE tenure_elections SET session = (SELECT id FROM tenure_sessions WHERE node = 'n2')",
        "INSERT OR REPLACE INTO tenure_elections
         VALUES ('default', 'reports', 0, 0, NULL, 0, NULL, 0, 0, 0, 0, NULL, NULL, 0)",
        "DELETE FROM tenure_sessions",
        "DELETE FROM tenure_meta",
    ] {
        let refused = connection.execute_batch(edit).unwrap_err().to_string();
        assert!(refused.contains("tenure: "), "{edit}: {refused}");
    }
    let refused = connection.execute_batch("DELETE FROM tenure_elections").unwrap_err().to_string();
    assert!(refused.contains("use Election::delete"), "{refused}");
    store.close(node, Default::default()).await.unwrap();
    assert!(connection.execute_batch("UPDATE tenure_sessions SET state = 'live'").is_err());
    assert_eq!(store.read(name("reports")).await.unwrap().value.term.number(), 1);
}

#[tokio::test]
async fn a_session_ended_by_hand_frees_its_lease_and_its_loss_is_told_once() {
    let place = place();
    let store = place.store().await;
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, first, "reports").await;
    place.by_hand().execute_batch("UPDATE tenure_sessions SET state = 'expired' WHERE node = 'n1'").unwrap();
    assert_eq!(win(&store, second, "reports").await.term.number(), 2);
    let kinds = kinds(&place.by_hand());
    assert_eq!(
        kinds,
        ["election_started", "leader_elected", "leader_lost", "leader_elected", "leader_changed"]
    );
}

fn kinds(connection: &Connection) -> Vec<String> {
    let mut statement =
        connection.prepare("SELECT kind FROM tenure_events WHERE election IS NOT NULL ORDER BY id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
