//! Finding the database, or saying why not.
#![allow(missing_docs, reason = "the tests read as sentences")]

use crate::kit::{connect, misconfigured, number, person, refused, unavailable};
use tenure_core::ElectionName;
use tenure_store::{Store, StoreUrl};
use tenure_testkit::server::Postgres;

const MADE: &str = "SELECT count(*) FROM pg_namespace WHERE nspname = 'tenure'";

#[tokio::test]
async fn nobody_comes_in_without_the_right_password() {
    let server = Postgres::start_protected("r:i@g/h?t%");
    let error = refused(&server.url_as("postgres:wrong")).await;
    misconfigured(&error, &["password authentication failed", "check user and password", "pg_hba.conf"]);
    assert!(!error.to_string().contains("wrong"), "{error}");
    let error = refused(&server.url()).await;
    misconfigured(&error, &["asks for a password, and there is none", "check user and password"]);
    let right = server.url_as("postgres:r%3Ai%40g%2Fh%3Ft%25");
    assert_eq!(number(&person(&right).await, MADE).await, 0);
    connect(&right).await.unwrap();
}

#[tokio::test]
async fn the_configuration_that_the_application_has_is_enough() {
    let password = "r:i@g/h?t%";
    let server = Postgres::start_protected(password);
    let port = server.host().rsplit(':').next().unwrap().parse().unwrap();
    let mut config = tokio_postgres::Config::new();
    config.host("127.0.0.1").port(port).user("postgres").password(password).dbname("postgres");
    config.application_name("shop");
    let url = StoreUrl::parse("postgres:?schema=blue").unwrap();
    let store = tenure_postgres::connect_with(config, &url).await.unwrap();
    store.read(ElectionName::new("any").unwrap()).await.unwrap(); // over a connection that is kept
    let person = person(&server.url_as("postgres:r%3Ai%40g%2Fh%3Ft%25")).await;
    assert_eq!(number(&person, "SELECT count(*) FROM pg_namespace WHERE nspname = 'blue'").await, 1);
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shop'";
    assert!(number(&person, ours).await > 0, "the connections are told by the application's name");
}

#[tokio::test]
async fn a_host_that_nobody_knows_is_named() {
    let url = "postgres://me@no-such-host.invalid:5433/db?sslmode=disable";
    unavailable(&refused(url).await, &["cannot reach PostgreSQL at no-such-host.invalid:5433", "lookup"]);
}

#[tokio::test]
async fn a_database_that_is_not_there_is_not_made() {
    let server = Postgres::start();
    let url = server.url().replace("/postgres", "/nowhere").replace("//nowhere", "//postgres");
    misconfigured(&refused(&url).await, &["database \"nowhere\" does not exist", "createdb"]);
    let databases = "SELECT count(*) FROM pg_database WHERE datname = 'nowhere'";
    assert_eq!(number(&person(&server.url()).await, databases).await, 0);
}

#[tokio::test]
async fn a_role_that_may_not_make_the_schema_is_told_who_can() {
    let server = Postgres::start();
    let owner = person(&server.url()).await;
    owner.batch_execute("CREATE ROLE app LOGIN").await.unwrap();
    let error = refused(&server.url_as("app")).await;
    misconfigured(&error, &["permission denied for database", "more rights", "docs/stores/postgres.md"]);
    assert_eq!(number(&owner, MADE).await, 0);
}

#[tokio::test]
async fn a_role_that_may_not_use_the_schema_is_told_what_it_lacks() {
    let server = Postgres::start();
    connect(&server.url()).await.unwrap();
    let owner = person(&server.url()).await;
    owner.batch_execute("CREATE ROLE app LOGIN").await.unwrap();
    let error = refused(&server.url_as("app")).await;
    misconfigured(&error, &["permission denied for schema tenure", "docs/stores/postgres.md"]);
}

#[tokio::test]
async fn a_schema_of_somebody_else_is_left_alone() {
    let server = Postgres::start();
    let owner = person(&server.url()).await;
    owner.batch_execute("CREATE SCHEMA tenure; CREATE TABLE tenure.meta (key text)").await.unwrap();
    misconfigured(&refused(&server.url()).await, &["column \"version\" does not exist"]);
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'tenure'";
    assert_eq!(number(&owner, tables).await, 1);
}
