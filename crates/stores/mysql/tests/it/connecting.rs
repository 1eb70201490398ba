//! Finding the database, or saying why not.

use crate::common::{FAST, Place};
use tenure_mysql::mysql_async::{Opts, OptsBuilder};
use tenure_store::{StoreError, StoreUrl};
use tenure_testkit::server::MariaDb;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{ask, calm, lead, soon, start};

const MADE: &str = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'tenure%'";

/// Why there is no store.
async fn refused(url: &str) -> StoreError {
    match soon(Place::connect(StoreUrl::parse(url).unwrap())).await {
        Ok(_) => panic!("{url} should be refused"),
        Err(error) => error,
    }
}

#[track_caller]
fn says(error: &StoreError, words: &[&str]) {
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

/// A human has to change something, and is told what.
#[track_caller]
fn misconfigured(error: &StoreError, words: &[&str]) {
    assert!(matches!(error, StoreError::Misconfigured(_)), "{error}");
    says(error, words);
}

/// It may pass, and there is a word about what it is.
#[track_caller]
fn unavailable(error: &StoreError, words: &[&str]) {
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    says(error, words);
}

#[tokio::test]
async fn nobody_comes_in_without_the_right_password() {
    let place = Place::start();
    ask(&place, "CREATE USER me@'%' IDENTIFIED BY 'r:i@g/h?t%'").await;
    ask(&place, "GRANT ALL ON tenure.* TO me@'%'").await;
    let error = refused(&place.0.url_as("me:wrong")).await;
    misconfigured(&error, &["Access denied", "check user and password"]);
    assert!(!error.to_string().contains("wrong"), "{error}");
    misconfigured(&refused(&place.0.url_as("me")).await, &["Access denied", "check user and password"]);
    let right = place.0.url_as("me:r%3Ai%40g%2Fh%3Ft%25");
    soon(Place::connect(StoreUrl::parse(&right).unwrap())).await.unwrap();
}

#[tokio::test]
async fn the_options_that_the_application_has_are_enough() {
    let place = Place::start();
    ask(&place, "CREATE USER me@'%' IDENTIFIED BY 'r:i@g/h?t%'").await;
    ask(&place, "GRANT ALL ON tenure.* TO me@'%'").await;
    let known = Opts::from_url(&place.0.url()).unwrap();
    let options = OptsBuilder::default().ip_or_hostname(known.ip_or_hostname()).tcp_port(known.tcp_port());
    let options = options.user(Some("me")).pass(Some("r:i@g/h?t%")).db_name(known.db_name());
    let url = StoreUrl::parse("mysql:?namespace=blue").unwrap();
    let store = soon(tenure_mysql::connect_with(&options.into(), &url)).await.unwrap();
    assert_eq!(store.options().namespace.as_str(), "blue");
    assert_ne!(ask(&place, MADE).await, "0");
}

#[tokio::test]
async fn a_host_that_nobody_knows_is_named() {
    let url = "mysql://me@no-such-host.invalid:3307/db?sslmode=disable";
    unavailable(&refused(url).await, &["cannot reach MySQL at no-such-host.invalid:3307"]);
}

#[tokio::test]
async fn a_database_that_is_not_there_is_not_made() {
    let place = Place::start();
    let url = place.url().replace("/tenure", "/nowhere");
    misconfigured(&refused(&url).await, &["nowhere", "CREATE DATABASE"]);
    let there = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'nowhere'";
    assert_eq!(ask(&place, there).await, "0");
}

#[tokio::test]
async fn a_user_who_may_not_make_the_tables_is_told_who_can() {
    let place = Place::start();
    ask(&place, "CREATE USER app@'%'").await;
    let error = refused(&place.0.url_as("app")).await;
    misconfigured(&error, &["denied", "more rights", "docs/stores/mysql.md"]);
    ask(&place, "GRANT SELECT ON tenure.* TO app@'%'").await;
    misconfigured(&refused(&place.0.url_as("app")).await, &["denied", "more rights"]);
    assert_eq!(ask(&place, MADE).await, "0");
}

#[tokio::test]
async fn tables_of_somebody_else_are_left_alone() {
    let place = Place::start();
    ask(&place, "CREATE TABLE tenure_meta (k INT)").await;
    misconfigured(&refused(&place.url()).await, &["Unknown column 'version'"]);
    assert_eq!(ask(&place, MADE).await, "1");
}

/// What defines tables cannot be rolled back, so it is carried on.
#[tokio::test]
async fn a_set_up_that_was_interrupted_is_carried_on() {
    let place = Place::start();
    drop(soon(Place::connect(StoreUrl::parse(&place.url()).unwrap())).await.unwrap());
    // As if it had ended half-way: the row comes last.
    for sql in [
        "DROP TRIGGER {t}meta_stays",
        "DELETE FROM {t}meta",
        "DROP PROCEDURE {t}claim",
        "DROP VIEW {t}leases",
        "DROP TABLE {t}listeners",
    ] {
        ask(&place, sql).await;
    }
    let node = start(calm("a"), &place.url()).await;
    let leadership = lead(&node).await;
    assert_eq!(ask(&place, "SELECT leader FROM {t}leases").await, "a");
    assert_eq!(leadership.term().number(), 1);
}

/// Where a binary log is written, only a user with SUPER may make triggers.
#[tokio::test]
async fn without_the_right_to_make_triggers_all_else_is_made_and_check_says_so() {
    let place = Place(MariaDb::start_with(&[FAST, "log-bin=b", "server-id=1", "sync-binlog=0"]));
    ask(&place, "CREATE USER me@'%'").await;
    ask(&place, "GRANT ALL ON tenure.* TO me@'%'").await;
    let store = soon(Place::connect(StoreUrl::parse(&place.0.url_as("me")).unwrap())).await.unwrap();
    let findings = soon(store.examine()).await.unwrap().value;
    let guards = findings.iter().find(|finding| finding.name == "guards").unwrap();
    assert!(!guards.fine && guards.advice.as_ref().unwrap().contains("log_bin_trust"), "{guards:?}");
    let log = findings.iter().find(|finding| finding.name == "binary log").unwrap();
    assert!(!log.fine && log.value.contains("sync_binlog = 0"), "{log:?}");
    let durable = findings.iter().find(|finding| finding.name == "durable log").unwrap();
    assert!(!durable.fine && durable.value.contains("= 0"), "{durable:?}");
}
