//! What is particular to PostgreSQL.

use tenure_core::Namespace;
use tenure_sql::{Database, Ears, Failure, Line, Value};
use tenure_store::{Finding, News, Setup, StoreError, StoreUrl};
use tokio::sync::Mutex;
use tokio_postgres::Config;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use crate::address::Address;
use crate::connect::{Wire, connect};
use crate::error::classify;
use crate::examination::ExaminationWords;
use crate::{address, news, setup};

/// What is still done for a request with this mark that was given up.
const LEFT_BEHIND: &str = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE usename = current_user AND state = 'active' AND pid <> pg_backend_pid() AND position($1 IN query) > 0";

/// A PostgreSQL database.
pub struct Postgres {
    pub(crate) address: Address,
    /// A connection of the application's own transactions, while there is none.
    pub(crate) idle: Mutex<Option<Wire>>,
}

impl Postgres {
    /// The database that the application's own configuration names, with its user and password. Of the URL, which names
    /// no host (`postgres:?schema=tenure`), only Tenure's own parameters are taken: `schema`, `news`, `namespace`,
    /// `history`; and `sslmode` and `sslrootcert`, because a configuration does not say whom to trust.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`]: what is wrong with either.
    pub fn configured(config: Config, url: &StoreUrl) -> Result<Self, StoreError> {
        let address = Address::configured(config, url).map_err(StoreError::misconfigured)?.equipped()?;
        Ok(Self { address, idle: Mutex::new(None) })
    }
}

impl Database for Postgres {
    type Connection = Wire;
    type Examination = ExaminationWords;
    const THREAD: &'static str = "tenure-postgres";
    const REHEARSES: bool = true;

    fn named(url: &StoreUrl) -> Result<Self, StoreError> {
        let address = Address::of(url).map_err(StoreError::misconfigured)?.equipped()?;
        Ok(Self { address, idle: Mutex::new(None) })
    }

    async fn prepare(&self, setup: Setup) -> Result<(), StoreError> {
        setup::prepare(&self.address, setup).await
    }

    async fn connect(&self) -> Result<Wire, StoreError> {
        connect(&self.address, None).await
    }

    fn is_closed(wire: &Wire) -> bool {
        wire.client.is_closed()
    }

    /// The server may still be at it: it waits for a lock no longer than a second (`careful`), but for a
    /// standby without end.
    ///
    /// Not by the protocol's own cancel request: PgBouncer before 1.19.1 may crash over one (its issue 801). Nor
    /// by `statement_timeout`, which counts from a statement's start, with what was set before it: that would
    /// need a database session or a second round trip, and it does not end the wait for a standby.
    async fn cancel(&self, wire: &mut Wire, mark: &str) -> Result<(), StoreError> {
        wire.client.query_typed(LEFT_BEHIND, &[(&mark, Type::TEXT)]).await.map_err(classify)?;
        Ok(())
    }

    async fn call(
        &self,
        wire: &mut Wire,
        mark: &str,
        function: &str,
        values: &[Value],
    ) -> Result<String, Failure> {
        let places: Vec<String> = (1..=values.len()).map(|place| format!("${place}")).collect();
        let (schema, places) = (self.address.quoted(), places.join(", "));
        let sql = format!("SELECT {schema}.{function}({places})::text /* {mark} */");
        // With their types: so nothing needs to be prepared, and one round trip is enough on any connection.
        let values: Vec<(&(dyn ToSql + Sync), Type)> = values.iter().map(typed).collect();
        let answer = wire.client.query_typed(&sql, &values).await;
        let replicated = wire.replicated();
        let rows = answer.map_err(|error| Failure {
            // A server that has become read-only is not the one that we want any more.
            answered: error
                .as_db_error()
                .is_some_and(|refused| *refused.code() != SqlState::READ_ONLY_SQL_TRANSACTION),
            error: classify(error),
        })?;
        replicated.map_err(|error| Failure { error, answered: true })?;
        rows.first().and_then(|row| row.try_get(0).ok()).ok_or_else(|| Failure {
            error: StoreError::misconfigured("Tenure's tables are gone: the database answers with nothing"),
            answered: true,
        })
    }

    fn news(&self) -> News {
        match self.address.news {
            address::News::Here | address::News::There(_) => News::Push,
            address::News::Nowhere => News::Poll,
        }
    }

    fn findings(&self, seen: ExaminationWords) -> Vec<Finding> {
        seen.findings(match self.address.news {
            address::News::Here => "LISTEN and NOTIFY; behind a pool, see docs/stores/postgres.md",
            address::News::There(_) => "LISTEN and NOTIFY, past the pool",
            address::News::Nowhere => "none: candidates look",
        })
    }

    async fn hear(&self, namespace: &Namespace, ears: &Ears, line: &Line<Self>) -> Result<(), StoreError> {
        news::hear(&self.address, namespace, ears, line).await
    }
}

fn typed(value: &Value) -> (&(dyn ToSql + Sync), Type) {
    match value {
        Value::Text(text) => (text, Type::TEXT),
        Value::Number(number) => (number, Type::INT8),
        Value::Small(number) => (number, Type::INT4),
        Value::Flag(flag) => (flag, Type::BOOL),
    }
}
