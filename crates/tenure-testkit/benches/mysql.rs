//! MariaDB: planned hand-over, crash fail-over, what idle nodes cost, and many elections on one session.

mod common;

use std::cell::RefCell;
use std::process::ExitCode;
use std::time::Duration;

use common::database::{Served, hold, measure};
use common::{Outcome, candidate};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tenure_store::clock;
use tenure_testkit::server::MariaDb;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    common::run("mysql", measure::<Server>, |words| match words {
        ["holder", elections, url] => hold(elections.parse()?, url),
        words => candidate::part(words),
    })
}

struct Server {
    runtime: Runtime,
    client: RefCell<Conn>,
    /// For the floor: it waits for what the other lets go.
    waiter: RefCell<Option<Conn>>,
    server: MariaDb,
}

impl Served for Server {
    const NAME: &'static str = "MariaDB";
    const TABLES: &'static str = "tenure_";
    const FLOOR: &'static str = "one durable UPDATE, the hand-over of a GET_LOCK and one read";
    const HANDOVER: f64 = 2.0;
    const AGE: &'static str =
        "SELECT TIMESTAMPDIFF(MICROSECOND, renewed_at, UTC_TIMESTAMP(6)) FROM tenure_leases
        WHERE election = 'bench' AND leader IS NOT NULL";
    const STATEMENTS: &'static str = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'Com_call_procedure'";
    const WRITTEN: &'static str =
        "SELECT CAST(SUM(VARIABLE_VALUE) AS SIGNED) FROM information_schema.GLOBAL_STATUS
        WHERE VARIABLE_NAME IN ('Handler_write', 'Handler_update', 'Handler_delete')";

    fn start() -> Outcome<Self> {
        let server = MariaDb::start_with(&["innodb-flush-log-at-trx-commit=1"]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (client, waiter) = runtime.block_on(async {
            drop(tenure::connect(server.url()).await?);
            let mut client = Conn::from_url(server.url()).await?;
            client.query_drop("CREATE TABLE floor (n BIGINT) ENGINE = InnoDB").await?;
            client.query_drop("INSERT INTO floor VALUES (0)").await?;
            Outcome::Ok((client, Conn::from_url(server.url()).await?))
        })?;
        Ok(Self { runtime, client: RefCell::new(client), waiter: RefCell::new(Some(waiter)), server })
    }

    fn url(&self) -> String {
        self.server.url()
    }

    fn ask(&self, sql: &str) -> Outcome<String> {
        let told: Option<String> = self.runtime.block_on(self.client.borrow_mut().query_first(sql))?;
        Ok(told.ok_or("there is no such row")?)
    }

    fn floor(&self) -> Outcome<Duration> {
        // Nodes wait for a lock of their own.
        const WAITS: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST
                             WHERE STATE = 'User lock' AND INFO LIKE '%floor%'";
        let client = &mut *self.client.borrow_mut();
        let mut waiter = self.waiter.borrow_mut().take().ok_or("the waiter is gone")?;
        let (took, waiter) = self.runtime.block_on(async {
            client.query_drop("DO GET_LOCK('floor', 0)").await?;
            let waits = tokio::spawn(async move {
                waiter.query_drop("DO GET_LOCK('floor', 10)").await?;
                let heard = clock::now();
                waiter.query_drop("DO RELEASE_LOCK('floor')").await?;
                Ok::<_, mysql_async::Error>((heard, waiter))
            });
            while client.query_first::<u64, _>(WAITS).await? != Some(1) {}
            let began = clock::now();
            client.query_drop("UPDATE floor SET n = n + 1").await?;
            client.query_drop("DO RELEASE_LOCK('floor')").await?;
            let (heard, waiter) = waits.await??;
            let handed = heard.since(began);
            let began = clock::now();
            client.query_drop("SELECT n FROM floor").await?;
            Outcome::Ok((handed + clock::now().since(began), waiter))
        })?;
        *self.waiter.borrow_mut() = Some(waiter);
        Ok(took)
    }
}
