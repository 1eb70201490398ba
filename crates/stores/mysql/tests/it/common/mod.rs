//! What the tests of this store share: a server, a person with a client, and the stage of all SQL stores.
#![allow(dead_code, reason = "every test file uses its own part of it")]

mod replication;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure::{Leadership, TransactionError};
use tenure_mysql::MySqlStore;
use tenure_mysql::mysql_async::prelude::Queryable;
use tenure_mysql::mysql_async::{Conn, Error, Row, Transaction};
use tenure_store::{Lease, Store, StoreError, StoreUrl};
use tenure_testkit::server::MariaDb;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::ask;

/// The rights of a user who only uses Tenure, as they are documented.
pub const GRANTS: &str = include_str!("../../../src/grants.sql");

/// A MariaDB of our own, as all SQL scenarios want it.
pub struct Place(pub MariaDb);

/// A person's connection.
pub async fn by_hand(url: &str) -> Conn {
    Conn::from_url(url).await.unwrap()
}

/// The first column of the first line, or the server's refusal.
pub async fn told(person: &mut Conn, sql: &str) -> Result<String, String> {
    let row: Option<Row> = person.query_first(sql).await.map_err(|error| match error {
        Error::Server(refused) => refused.message,
        error => error.to_string(),
    })?;
    Ok(row.and_then(|mut row| row.take::<Option<String>, _>(0).flatten()).unwrap_or_default())
}

/// Tenure's tables are made, and the user `app` may use them and nothing else.
pub async fn with_a_humble_user(place: &Place) {
    drop(Place::connect(StoreUrl::parse(&place.url()).unwrap()).await.unwrap());
    ask(place, "CREATE USER app@'%'").await;
    for line in GRANTS.lines().filter(|line| line.starts_with("GRANT")) {
        ask(place, line).await;
    }
}

/// Nothing is synced to disk.
pub const FAST: &str = "innodb-flush-log-at-trx-commit=0";

/// Which connections are Tenure's: all but the one that asks.
const OURS: &str = "information_schema.PROCESSLIST WHERE DB = 'tenure' AND ID <> CONNECTION_ID()";

impl Place {
    /// Ends those connections; how many?
    async fn end(&self, which: &str) -> u64 {
        let mut person = by_hand(&self.url()).await;
        let numbers: Vec<u64> = person.query(format!("SELECT ID FROM {OURS} AND {which}")).await.unwrap();
        for number in &numbers {
            // It may have ended by itself.
            let _ = person.query_drop(format!("KILL {number}")).await;
        }
        numbers.len() as u64
    }

    /// Whether it has room in its log for one more line, of a namespace that nobody uses.
    async fn logs(&self) -> bool {
        let line =
            "INSERT INTO tenure_histories VALUES ('nobodys', 1) ON DUPLICATE KEY UPDATE events = events + 1";
        tokio::time::timeout(Duration::from_secs(5), self.ask(line)).await.is_ok()
    }
}

impl SqlServer for Place {
    const TABLES: &'static str = "tenure_";
    const NO_ROOM: &'static str = "is full";
    const FULL: [&'static str; 2] = ["Too many connections", "max_connections"];
    /// One sleeps in the server until there is news.
    const CONNECTIONS: u64 = 2;
    const MADE: &'static str =
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'tenure%'";
    const REFUSED: &'static [(&'static str, &'static str)] =
        &[("TRUNCATE {t}elections", "foreign key"), ("TRUNCATE {t}sessions", "foreign key")];

    fn start() -> Self {
        Self(MariaDb::start())
    }

    fn start_durable() -> Self {
        Self(MariaDb::start_with(&[]))
    }

    fn start_small() -> Self {
        Self(MariaDb::start_with(&[FAST, "max-connections=10"]))
    }

    fn start_talkative() -> Self {
        Self(MariaDb::start_with(&[FAST, "general-log=1", "general-log-file=../asked"]))
    }

    fn start_primary() -> Self {
        Self(MariaDb::start_with(&[&[FAST, "log-bin=log", "server-id=1"], replication::settings()].concat()))
    }

    fn start_on_a_small_disk() -> Self {
        Self(MariaDb::start_on_a_small_disk(&[]))
    }

    /// Of its own log InnoDB keeps room free; of a binary log nobody does.
    fn start_logging_on_a_small_disk() -> Self {
        Self(MariaDb::start_on_a_small_disk(&["log-bin=log", "server-id=1"]))
    }

    fn start_encrypted(certificate: &str, key: &str) -> Self {
        Self(MariaDb::start_encrypted(certificate, key))
    }

    async fn url_that_must_encrypt(&self) -> String {
        ask(self, "CREATE USER safe@'%' REQUIRE SSL").await;
        ask(self, "GRANT ALL ON tenure.* TO safe@'%'").await;
        self.0.url_as("safe")
    }

    fn port(&self) -> u16 {
        self.0.port()
    }

    fn url_by(&self, port: u16) -> String {
        self.0.url_by(port)
    }

    fn stop(&mut self) {
        self.0.stop();
    }

    fn kill(&mut self) {
        self.0.kill();
    }

    fn launch(&mut self) {
        self.0.launch();
    }

    /// From the first line of the log on: a new server has what its primary had before that.
    async fn replica(&self) -> Self {
        let settings = [FAST, "log-bin=log", "server-id=2", "read-only=1"];
        let replica = Self(MariaDb::start_with(&[&settings, replication::settings()].concat()));
        for sql in replication::follow(self.port()) {
            ask(&replica, &sql).await;
        }
        replica
    }

    async fn catch_up(&self, primary: &Self) {
        let position = ask(primary, replication::position()).await;
        assert_eq!(ask(self, &replication::wait(&position)).await, "0");
    }

    async fn promote(&self) {
        for sql in replication::promote() {
            ask(self, sql).await;
        }
    }

    fn fill_the_disk(&self) {
        self.0.fill_the_disk();
    }

    /// Then the server looks for room once a minute, and whoever commits waits.
    async fn exhaust_the_log(&self) {
        while self.logs().await {}
    }

    async fn free_the_disk(&mut self) {
        self.0.free_the_disk();
        if !self.logs().await {
            self.kill();
            self.launch();
        }
    }

    async fn connect(url: StoreUrl) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(MySqlStore::connect(&url).await?))
    }

    async fn ask(&self, sql: &str) -> Result<String, String> {
        told(&mut by_hand(&self.url()).await, &sql.replace("{t}", Self::TABLES)).await
    }

    fn called(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.0.data().join("../asked")).unwrap();
        // What procedures call in turn is given no text.
        let called = |line: &str| {
            let (function, _) = line.split_once("CALL tenure_")?.1.split_once("(_utf8mb4 x'")?;
            Some(function.to_owned())
        };
        log.lines().filter_map(called).collect()
    }

    async fn connections(&self) -> u64 {
        self.ask(&format!("SELECT COUNT(*) FROM {OURS}")).await.unwrap().parse().unwrap()
    }

    async fn end_connections(&self) -> u64 {
        self.end("TRUE").await
    }

    async fn lock_sessions(&self) -> Box<dyn Send> {
        self.lock_rows("sessions").await
    }

    async fn lock_rows(&self, table: &str) -> Box<dyn Send> {
        let mut holder = by_hand(&self.url()).await;
        holder.query_drop("BEGIN").await.unwrap();
        holder.query_drop(format!("SELECT * FROM tenure_{table} FOR UPDATE")).await.unwrap();
        Box::new(holder)
    }

    async fn lock_table(&self, table: &str) -> Box<dyn Send> {
        let mut holder = by_hand(&self.url()).await;
        holder.query_drop(format!("LOCK TABLES tenure_{table} WRITE")).await.unwrap();
        Box::new(holder)
    }

    async fn waiting(&self) -> Vec<String> {
        // The server shows the same transactions again to whoever asks within a tenth of a second.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let mut person = by_hand(&self.url()).await;
        let rows = "SELECT trx_query FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";
        let tables = format!("SELECT INFO FROM {OURS} AND STATE LIKE 'Waiting for table%'");
        let waiting = person.query(format!("{rows} UNION ALL {tables}")).await.unwrap();
        waiting.into_iter().map(|asked: Option<String>| asked.unwrap_or_default()).collect()
    }

    async fn end_whoever_waits(&self) -> bool {
        self.end("INFO LIKE '%tenure_sessions%FOR UPDATE%' AND COMMAND = 'Query'").await > 0
    }

    async fn set_read_only(&self, only: bool) {
        ask(self, &format!("SET GLOBAL read_only = {only}")).await;
    }

    /// Whoever changes something finds nobody to wake up.
    async fn deafen(&self) -> Box<dyn Send> {
        tenure_testkit::sql::stage::until(self, "SELECT COUNT(*) >= 2 FROM {t}listeners").await;
        ask(self, "DELETE FROM {t}listeners").await;
        Box::new(())
    }

    async fn fenced(
        leadership: &Leadership,
        sql: &str,
        then: impl Future<Output = Result<(), String>> + Send,
    ) -> Result<(), TransactionError<String>> {
        let work = async |transaction: &mut Transaction<'_>| {
            transaction.query_drop(sql).await.map_err(|error| error.to_string())?;
            then.await
        };
        leadership.mysql_transaction(work).await
    }

    async fn fenced_on(
        store: &Arc<dyn Store>,
        lease: Lease,
        sql: &str,
    ) -> Result<(), tenure_store::TransactionError<String>> {
        let store = store.as_any().downcast_ref::<MySqlStore>().unwrap();
        let work = async |transaction: &mut Transaction<'_>| {
            transaction.query_drop(sql).await.map_err(|error| error.to_string())
        };
        tenure_mysql::transaction(store, lease, || true, work).await
    }
}
