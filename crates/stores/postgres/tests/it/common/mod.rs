//! What the tests of this store share: a server, a person with psql, and the stage of all SQL stores.
#![allow(dead_code, unused_imports, reason = "every test file uses its own part of it")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tenure::{Leadership, TransactionError};
use tenure_postgres::PostgresStore;
use tenure_store::{Lease, Store, StoreError, StoreUrl};
use tenure_testkit::server::Postgres;
use tenure_testkit::sql::SqlServer;
pub use tenure_testkit::sql::stage::{
    ELECTION, HANG, Witness, brief, calm, claiming, lead, misconfigured, name, renewals, soon, stand, start,
};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage, Transaction};

/// A person's connection, as with psql.
pub async fn by_hand(url: &str) -> Client {
    try_by_hand(url).await.unwrap()
}

pub async fn try_by_hand(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// What a query gives, in its first column of its first row.
pub async fn ask<T: for<'a> tokio_postgres::types::FromSql<'a>>(person: &Client, sql: &str) -> T {
    soon(person.query_one(sql, &[])).await.unwrap().get(0)
}

/// Waits until a query says yes.
pub async fn until(person: &Client, sql: &str) {
    soon(async {
        while !ask::<bool>(person, sql).await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A commit waits for as many standbys as these names say.
pub async fn demand(person: &Client, url: &str, standbys: &str) {
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{standbys}'");
    person.batch_execute(&set).await.unwrap();
    person.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    if standbys.is_empty() {
        return;
    }
    // Whether the server has heard is seen by what becomes of a write.
    let writer = by_hand(&format!("{url}?application_name=probe")).await;
    tokio::spawn(async move {
        writer.batch_execute("CREATE TABLE IF NOT EXISTS probe (n int)").await.unwrap();
        while writer.batch_execute("INSERT INTO probe VALUES (1)").await.is_ok() {}
    });
    until(person, &waits("application_name = 'probe'")).await;
}

/// Whether one that this is true of waits for a standby.
pub fn waits(of: &str) -> String {
    format!("SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND {of})")
}

/// Does it, and has it refused: with which words?
pub async fn refused(person: &Client, sql: &str) -> String {
    let error = soon(person.batch_execute(sql)).await.expect_err(sql);
    error.as_db_error().expect(sql).message().to_owned()
}

pub async fn connect(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    soon(Place::connect(StoreUrl::parse(url).unwrap())).await
}

/// Opens session `number`, of node `n<number>`.
pub async fn open(store: &Arc<dyn Store>, number: u128) -> tenure_core::SessionId {
    tenure_testkit::sql::stage::open(store, number).await
}

/// Claims an election that is free.
pub async fn win(store: &Arc<dyn Store>, session: tenure_core::SessionId) -> tenure_core::Term {
    tenure_testkit::sql::stage::win(store, session).await
}

/// A PostgreSQL of our own, as all SQL scenarios want it.
pub struct Place(pub Postgres);

const OURS: &str = "FROM pg_stat_activity WHERE application_name = 'tenure'";

impl SqlServer for Place {
    const TABLES: &'static str = "tenure.";
    const NO_ROOM: &'static str = "No space left on device";
    const FULL: [&'static str; 2] = ["too many clients", "max_connections"];
    const CONNECTIONS: u64 = 1;
    const MADE: &'static str = "SELECT count(*) FROM pg_namespace WHERE nspname = 'tenure'";
    const REFUSED: &'static [(&'static str, &'static str)] = &[
        ("TRUNCATE {t}elections", "use `tenure delete`"),
        ("TRUNCATE {t}sessions CASCADE", "stop the nodes instead"),
        ("TRUNCATE {t}meta", "the row names this store"),
    ];

    fn start() -> Self {
        Self(Postgres::start())
    }

    fn start_durable() -> Self {
        Self(Postgres::start_with(&[]))
    }

    fn start_small() -> Self {
        Self(Postgres::start_with(&["fsync=off", "max_connections=8", "superuser_reserved_connections=0"]))
    }

    fn start_talkative() -> Self {
        Self(Postgres::start_with(&["fsync=off", "log_statement=all"]))
    }

    fn start_primary() -> Self {
        Self::start()
    }

    fn start_on_a_small_disk() -> Self {
        Self(Postgres::start_on_a_small_disk())
    }

    fn start_encrypted(certificate: &str, key: &str) -> Self {
        Self(Postgres::start_encrypted(certificate, key))
    }

    async fn url_that_must_encrypt(&self) -> String {
        let rules = self.0.data().join("pg_hba.conf");
        let ours = std::fs::read_to_string(&rules).unwrap();
        std::fs::write(&rules, format!("hostssl all safe all trust\nhostnossl all safe all reject\n{ours}"))
            .unwrap();
        for sql in ["SELECT pg_reload_conf()", "CREATE ROLE safe SUPERUSER LOGIN"] {
            self.ask(sql).await.unwrap();
        }
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

    async fn replica(&self) -> Self {
        Self(self.0.replica())
    }

    async fn catch_up(&self, primary: &Self) {
        let sent = primary.ask("SELECT pg_current_wal_lsn()").await.unwrap();
        let has = format!("SELECT pg_last_wal_replay_lsn() >= '{sent}'");
        tenure_testkit::sql::stage::until(self, &has).await;
    }

    async fn promote(&self) {
        self.ask("SELECT pg_promote()").await.unwrap();
    }

    fn fill_the_disk(&self) {
        self.0.fill_the_disk();
    }

    /// A new file of its log, until there is none: then it gives up altogether.
    async fn exhaust_the_log(&self) {
        let person = by_hand(&self.0.url()).await;
        let next = "SELECT pg_logical_emit_message(true, 'junk', 'x'); SELECT pg_switch_wal()";
        while person.batch_execute(next).await.is_ok() {}
    }

    async fn free_the_disk(&mut self) {
        self.0.free_the_disk();
    }

    fn called(&self) -> Vec<String> {
        let log = self.0.log();
        let asked = log.lines().filter_map(|line| Some(line.split_once(": SELECT ")?.1));
        let called = asked.filter_map(|sql| Some(sql.strip_prefix("\"tenure\".")?.split_once('(')?.0));
        called.map(str::to_owned).collect()
    }

    async fn connect(url: StoreUrl) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(PostgresStore::connect(&url).await?))
    }

    async fn ask(&self, sql: &str) -> Result<String, String> {
        let person = by_hand(&self.0.url()).await;
        let sql = sql.replace("{t}", Self::TABLES);
        let told = person.simple_query(&sql).await.map_err(|error| match error.as_db_error() {
            Some(refused) => refused.message().to_owned(),
            None => error.to_string(),
        })?;
        let row = told.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
            _ => None,
        });
        Ok(row.unwrap_or_default())
    }

    async fn connections(&self) -> u64 {
        self.ask(&format!("SELECT count(*) {OURS}")).await.unwrap().parse().unwrap()
    }

    async fn end_connections(&self) -> u64 {
        let ended = self.ask(&format!("SELECT count(pg_terminate_backend(pid)) {OURS}")).await;
        ended.unwrap().parse().unwrap()
    }

    async fn lock_sessions(&self) -> Box<dyn Send> {
        self.lock_rows("sessions").await
    }

    async fn lock_rows(&self, table: &str) -> Box<dyn Send> {
        let holder = by_hand(&self.0.url()).await;
        holder.batch_execute(&format!("BEGIN; SELECT 1 FROM tenure.{table} FOR UPDATE")).await.unwrap();
        Box::new(holder)
    }

    async fn lock_table(&self, table: &str) -> Box<dyn Send> {
        let holder = by_hand(&self.0.url()).await;
        holder.batch_execute(&format!("BEGIN; LOCK TABLE tenure.{table}")).await.unwrap();
        Box::new(holder)
    }

    async fn waiting(&self) -> Vec<String> {
        let person = by_hand(&self.0.url()).await;
        let waiting = format!("SELECT query {OURS} AND wait_event_type = 'Lock'");
        person.query(&waiting, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    async fn end_whoever_waits(&self) -> bool {
        let ended = format!("SELECT count(pg_terminate_backend(pid)) {OURS} AND wait_event_type = 'Lock'");
        self.ask(&ended).await.unwrap() != "0"
    }

    async fn set_read_only(&self, only: bool) {
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {only}");
        for sql in [&*set, "SELECT pg_reload_conf()"] {
            self.ask(sql).await.unwrap();
        }
    }

    /// Whoever changes something notifies nobody.
    async fn deafen(&self) -> Box<dyn Send> {
        let silence = "DO $$ DECLARE talks regprocedure; BEGIN
            FOR talks IN SELECT oid FROM pg_proc
                WHERE pronamespace = 'tenure'::regnamespace AND position('pg_notify(' IN prosrc) > 0
            LOOP EXECUTE replace(pg_get_functiondef(talks), 'pg_notify(', 'concat('); END LOOP;
        END $$";
        by_hand(&self.0.url()).await.batch_execute(silence).await.unwrap();
        Box::new(())
    }

    async fn fenced(
        leadership: &Leadership,
        sql: &str,
        then: impl Future<Output = Result<(), String>> + Send,
    ) -> Result<(), TransactionError<String>> {
        let work = async |transaction: &Transaction<'_>| {
            transaction.batch_execute(sql).await.map_err(|error| error.to_string())?;
            then.await
        };
        leadership.postgres_transaction(work).await
    }

    async fn fenced_on(
        store: &Arc<dyn Store>,
        lease: Lease,
        sql: &str,
    ) -> Result<(), tenure_store::TransactionError<String>> {
        let store = store.as_any().downcast_ref::<PostgresStore>().unwrap();
        let work = async |transaction: &Transaction<'_>| {
            transaction.batch_execute(sql).await.map_err(|error| error.to_string())
        };
        tenure_postgres::transaction(store, lease, || true, work).await
    }
}
