//! What tests of connecting share: clear refusals, somebody with psql, a role with least rights.
#![allow(dead_code, reason = "not every test needs everything")]

use tenure_postgres::PostgresStore;
use tenure_store::{StoreError, StoreUrl};
use tenure_testkit::server::Postgres;
use tokio_postgres::{Client, NoTls};

/// The rights of a role that only uses Tenure, as they are documented.
pub const GRANTS: &str = include_str!("../../../src/grants.sql");

pub async fn connect(url: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::connect(&StoreUrl::parse(url).unwrap()).await
}

/// Why there is no store.
pub async fn refused(url: &str) -> StoreError {
    match connect(url).await {
        Ok(_) => panic!("{url} should be refused"),
        Err(error) => error,
    }
}

/// A human has to change something, and is told what.
#[track_caller]
pub fn misconfigured(error: &StoreError, words: &[&str]) {
    assert!(matches!(error, StoreError::Misconfigured(_)), "{error}");
    says(error, words);
}

/// It may pass, and there is a word about what it is.
#[track_caller]
pub fn unavailable(error: &StoreError, words: &[&str]) {
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    says(error, words);
}

#[track_caller]
fn says(error: &StoreError, words: &[&str]) {
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

/// Somebody with psql.
pub async fn person(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

pub async fn number(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// A server where Tenure's schema is made, and the role `app` may use it and nothing else.
pub async fn with_a_humble_role(server: &Postgres) -> Client {
    connect(&server.url()).await.unwrap();
    let owner = person(&server.url()).await;
    owner.batch_execute(&format!("CREATE ROLE app LOGIN; {GRANTS}")).await.unwrap();
    owner
}
