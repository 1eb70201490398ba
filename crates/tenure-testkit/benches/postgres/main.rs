//! PostgreSQL: planned hand-over, crash fail-over, what idle nodes cost, and many elections on one session.

#[path = "../common/mod.rs"]
mod common;
#[path = "../peers/mod.rs"]
mod peers;
mod rivals;

use std::process::ExitCode;
use std::time::Duration;

use common::database::{Served, hold, measure};
use common::{Bench, Outcome};
use tenure_store::clock;
use tenure_testkit::server::Postgres;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

fn main() -> ExitCode {
    common::run("postgres", measure::<Server>, |words| match words {
        ["holder", elections, url] => hold(elections.parse()?, url),
        words => peers::part(words),
    })
}

struct Server {
    runtime: Runtime,
    client: Client,
    server: Postgres,
}

impl Served for Server {
    const NAME: &'static str = "PostgreSQL";
    const TABLES: &'static str = "tenure.";
    const FLOOR: &'static str = "one durable UPDATE, one NOTIFY and one read";
    const HANDOVER: f64 = 1.7;
    const AGE: &'static str = "SELECT (extract(epoch FROM clock_timestamp() - renewed_at) * 1000000)::bigint
        FROM tenure.leases WHERE election = 'bench' AND leader IS NOT NULL";
    const STATEMENTS: &'static str = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'";
    const WRITTEN: &'static str =
        "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)::bigint FROM pg_stat_user_tables";

    fn start() -> Outcome<Self> {
        let server = Postgres::start_with(&[]);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(async {
            drop(tenure::connect(server.url()).await?);
            let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
            tokio::spawn(connection);
            client.batch_execute("CREATE TABLE floor (n bigint); INSERT INTO floor VALUES (0)").await?;
            Outcome::Ok(client)
        })?;
        Ok(Self { runtime, client, server })
    }

    fn url(&self) -> String {
        self.server.url()
    }

    fn ask(&self, sql: &str) -> Outcome<String> {
        let told = self.runtime.block_on(self.client.simple_query(sql))?;
        let row = told.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(row.ok_or("there is no such row")?.to_owned())
    }

    fn rivals(bench: &Bench) -> Outcome<()> {
        let rounds = if bench.quick { 10 } else { 100 };
        rivals::advisory_lock(bench, rounds)?;
        rivals::etcd_election(bench, rounds)
    }

    fn floor(&self) -> Outcome<Duration> {
        let began = clock::now();
        for sql in ["UPDATE floor SET n = n + 1", "NOTIFY floor", "SELECT n FROM floor"] {
            self.runtime.block_on(self.client.batch_execute(sql))?;
        }
        Ok(clock::now().since(began))
    }
}
