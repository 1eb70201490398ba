//! The SQL of the documents, on the servers that it is for, with Tenure's own tables there.

use std::process::Command;

use rusqlite::Connection;
use tempfile::TempDir;
use tenure_testkit::server::{MariaDb, Postgres};

use tenure::mysql::mysql_async::{Conn, prelude::Queryable};
use tenure::postgres::tokio_postgres::{Client, NoTls};

use super::book::{Block, Kind, documents};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Postgres,
    MySql,
    Sqlite,
}

impl Dialect {
    /// What a block is for: its document is that of a store, or its first line says so.
    fn speaks(self, block: &Block) -> bool {
        let (document, name) = match self {
            Self::Postgres => ("docs/stores/postgres.md", "PostgreSQL"),
            Self::MySql => ("docs/stores/mysql.md", "MySQL"),
            Self::Sqlite => ("docs/stores/sqlite.md", "SQLite"),
        };
        let first = block.text.lines().next().unwrap_or_default();
        let named = first.split(';').next().unwrap_or_default();
        block.place.starts_with(document) || (named.starts_with("-- ") && named.contains(name))
    }
}

/// What is given for the parameters, in their order.
const GIVEN: [&str; 2] = ["'reports'", "5"];
/// The same where a row has its own term.
const GIVEN_TO_A_ROW: [&str; 3] = ["'hello'", "5", "1"];

/// The statements of a block, each with its parameters filled in.
fn statements(block: &Block) -> Vec<String> {
    let text = match block.kind() {
        Some(Kind::SqlSession) => {
            let typed = block.text.lines().filter_map(|line| line.split_once("> ").map(|(_, typed)| typed));
            typed.collect::<Vec<_>>().join("\n")
        }
        _ => block.text.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n"),
    };
    text.split(';').map(str::trim).filter(|statement| !statement.is_empty()).map(filled).collect()
}

fn filled(statement: &str) -> String {
    let given: &[&str] = if statement.starts_with("UPDATE reports") { &GIVEN_TO_A_ROW } else { &GIVEN };
    let mut filled = statement.to_owned();
    for (number, value) in (1..).zip(given) {
        filled = filled.replace(&format!("${number}"), value).replace(&format!("?{number}"), value);
    }
    // Of those without a number the first is a resource, the others are the term.
    filled = filled.replacen('?', GIVEN[0], 1).replace('?', GIVEN[1]);
    filled
}

fn blocks(dialect: Dialect) -> Vec<Block> {
    let all = documents().into_iter().flat_map(|document| document.blocks);
    let sql = all.filter(|block| matches!(block.kind(), Some(Kind::Sql | Kind::SqlSession)));
    sql.filter(|block| dialect.speaks(block)).collect()
}

const REPORTS: &str = "CREATE TABLE reports (id BIGINT PRIMARY KEY, body TEXT, term BIGINT)";

/// A store of the command, with an election in it.
fn with_history(url: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    let output =
        command.args(["run", "--election", "nightly", "--store", url, "--", "true"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn psql(url: &str) -> Client {
    let (client, connection) = tenure::postgres::tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn what_is_written_for_postgresql_runs_there() {
    let server = Postgres::start();
    with_history(&server.url());
    let client = psql(&server.url()).await;
    client.batch_execute(&format!("CREATE ROLE app; {REPORTS}")).await.unwrap();
    let mut run = 0;
    for block in blocks(Dialect::Postgres) {
        for statement in statements(&block) {
            let outcome = client.batch_execute(&statement).await;
            outcome.unwrap_or_else(|error| panic!("{}: {statement}: {error:?}", block.place));
            run += 1;
        }
        client.batch_execute("COMMIT").await.unwrap();
    }
    assert!(run >= 13, "only {run} statements were found");
}

#[tokio::test]
async fn what_is_written_for_mysql_runs_there() {
    let server = MariaDb::start();
    with_history(&server.url());
    let mut client = Conn::from_url(server.url()).await.unwrap();
    client.query_drop("CREATE USER app@'%'").await.unwrap();
    client
        .query_drop("CREATE TABLE fences (resource VARCHAR(128) PRIMARY KEY, term BIGINT NOT NULL)")
        .await
        .unwrap();
    let mut run = 0;
    for block in blocks(Dialect::MySql) {
        for statement in statements(&block) {
            let outcome = client.query_drop(&statement).await;
            outcome.unwrap_or_else(|error| panic!("{}: {statement}: {error}", block.place));
            run += 1;
        }
        client.query_drop("COMMIT").await.unwrap();
    }
    assert!(run >= 30, "only {run} statements were found");
}

#[test]
fn what_is_written_for_sqlite_runs_there() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("tenure.db");
    with_history(&format!("sqlite:{}", file.display()));
    let client = Connection::open(file).unwrap();
    client.execute_batch(REPORTS).unwrap();
    let mut run = 0;
    for block in blocks(Dialect::Sqlite) {
        for statement in statements(&block) {
            let outcome = client.execute_batch(&statement);
            // The document shows how this is refused.
            let refused = statement.starts_with("DELETE FROM tenure_");
            assert_eq!(outcome.is_err(), refused, "{}: {statement}: {outcome:?}", block.place);
            run += 1;
        }
        let _ = client.execute_batch("COMMIT");
    }
    assert!(run >= 8, "only {run} statements were found");
}

#[test]
fn every_statement_is_for_a_server_that_it_is_run_on() {
    for block in documents().iter().flat_map(|document| &document.blocks) {
        let sql = matches!(block.kind(), Some(Kind::Sql | Kind::SqlSession));
        let spoken =
            [Dialect::Postgres, Dialect::MySql, Dialect::Sqlite].iter().any(|dialect| dialect.speaks(block));
        assert!(!sql || spoken, "{}: say in its first line which database it is for", block.place);
    }
}
