//! Where the crowd meets: stores of our own with everything on disk, which say what is asked of them.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tenure_testkit::server::{MariaDb, Postgres, ZooKeeper};
use tokio_postgres::{Client, NoTls};

use crate::common::Outcome;
use crate::common::place::Place;

pub trait Meeting: Sized {
    const NAME: &'static str;
    /// What is counted as a request.
    const REQUESTS: &'static str;

    async fn open() -> Outcome<Self>;
    fn url(&self) -> String;

    /// How many requests there were ever; `None`: nobody counts but the nodes.
    async fn requests(&mut self) -> Outcome<Option<u64>> {
        Ok(None)
    }

    /// How many connections the nodes hold; `None`: there is no limit to be near.
    async fn connections(&mut self) -> Outcome<Option<u64>> {
        Ok(None)
    }
}

pub struct Sqlite(Place);

impl Meeting for Sqlite {
    const NAME: &'static str = "SQLite";
    const REQUESTS: &'static str = "verbs";

    async fn open() -> Outcome<Self> {
        Place::on_disk().map(Self)
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.database().display())
    }
}

pub struct OnPostgres {
    client: Client,
    server: Postgres,
}

impl OnPostgres {
    async fn number(&self, sql: &str) -> Outcome<Option<u64>> {
        let number: i64 = self.client.query_one(sql, &[]).await?.get(0);
        Ok(Some(number.try_into()?))
    }
}

impl Meeting for OnPostgres {
    const NAME: &'static str = "PostgreSQL";
    const REQUESTS: &'static str = "statements";

    async fn open() -> Outcome<Self> {
        let settings = ["max_connections=500", "shared_preload_libraries=pg_stat_statements"];
        let server = Postgres::start_with(&settings);
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("CREATE EXTENSION pg_stat_statements").await?;
        Ok(Self { client, server })
    }

    fn url(&self) -> String {
        self.server.url()
    }

    /// Not transactions: whoever listens has one of its own for every NOTIFY, and asks nothing by it.
    async fn requests(&mut self) -> Outcome<Option<u64>> {
        self.number("SELECT sum(calls)::bigint FROM pg_stat_statements").await
    }

    async fn connections(&mut self) -> Outcome<Option<u64>> {
        self.number(
            "SELECT count(*) FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
        .await
    }
}

pub struct OnMariaDb {
    client: Conn,
    server: MariaDb,
}

impl OnMariaDb {
    async fn number(&mut self, sql: &str) -> Outcome<Option<u64>> {
        let number: Option<u64> = self.client.query_first(sql).await?;
        Ok(Some(number.ok_or("there is no such number")?))
    }
}

impl Meeting for OnMariaDb {
    const NAME: &'static str = "MariaDB";
    const REQUESTS: &'static str = "statements";

    async fn open() -> Outcome<Self> {
        let server = MariaDb::start_with(&["innodb-flush-log-at-trx-commit=1", "max-connections=500"]);
        Ok(Self { client: Conn::from_url(server.url()).await?, server })
    }

    fn url(&self) -> String {
        self.server.url()
    }

    async fn requests(&mut self) -> Outcome<Option<u64>> {
        self.number(
            "SELECT CAST(VARIABLE_VALUE AS UNSIGNED) FROM information_schema.GLOBAL_STATUS
             WHERE VARIABLE_NAME = 'Questions'",
        )
        .await
    }

    async fn connections(&mut self) -> Outcome<Option<u64>> {
        self.number(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST
             WHERE ID <> CONNECTION_ID() AND COMMAND <> 'Daemon'",
        )
        .await
    }
}

pub struct OnZooKeeper(ZooKeeper);

impl Meeting for OnZooKeeper {
    const NAME: &'static str = "ZooKeeper";
    const REQUESTS: &'static str = "packets";

    async fn open() -> Outcome<Self> {
        Ok(Self(ZooKeeper::ensemble(1)))
    }

    fn url(&self) -> String {
        self.0.url()
    }

    async fn requests(&mut self) -> Outcome<Option<u64>> {
        Ok(Some(self.0.measure(0, "zk_packets_received")))
    }
}
