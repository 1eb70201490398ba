//! The schema: made once, also when three nodes start at once.

use tenure_store::{Setup, StoreError};
use tokio_postgres::Client;

use crate::address::Address;
use crate::connect::{connect, places};
use crate::error::classify;

const VERSION: i32 = 11;
/// The oldest server that knows all that is used.
const OLDEST: i32 = 130_000;
const SCHEMA: &str = include_str!("schema.sql");
const LEDGER: &str = include_str!("ledger.sql");

/// Sees to it that the tables are there, and ours.
pub(crate) async fn prepare(address: &Address, setup: Setup) -> Result<(), StoreError> {
    let wire = connect(address, None).await?;
    let client = &wire.client;
    let server: i32 = one(client, "SELECT current_setting('server_version_num')::int").await?;
    if server < OLDEST {
        return Err(StoreError::misconfigured(format!(
            "the server is PostgreSQL {}, and Tenure needs {} or newer; upgrade it, or use another store",
            server / 10_000,
            OLDEST / 10_000
        )));
    }
    match version(client, address).await? {
        None if setup == Setup::Never => Err(StoreError::not_set_up(format!(
            "the database `{}` at {} has no schema {} with Tenure's tables",
            address.config.get_dbname().unwrap_or_default(),
            places(address),
            address.quoted()
        ))),
        None => create(client, address).await,
        Some(VERSION) => Ok(()),
        Some(newer) if newer > VERSION => Err(StoreError::misconfigured(format!(
            "the schema {} was made by a newer Tenure (layout {newer}, this one knows {VERSION}); upgrade this node",
            address.quoted()
        ))),
        Some(older) => Err(StoreError::misconfigured(format!(
            "the schema {} has layout {older}, from before the first release, and this Tenure makes layout {VERSION}; \
             stop all nodes and drop it (DROP SCHEMA {} CASCADE; terms start again), or use another schema",
            address.quoted(),
            address.quoted()
        ))),
    }
}

async fn one<T>(client: &Client, sql: &str) -> Result<T, StoreError>
where
    T: for<'a> tokio_postgres::types::FromSql<'a>,
{
    let rows = client.query_typed(sql, &[]).await.map_err(classify)?;
    rows.first()
        .and_then(|row| row.try_get(0).ok())
        .ok_or_else(|| StoreError::misconfigured(format!("the server does not answer `{sql}`")))
}

/// The layout that is there, if there is one.
async fn version(client: &Client, address: &Address) -> Result<Option<i32>, StoreError> {
    let schema = address.quoted();
    // Not `to_regclass`: it may answer from a cache that has not heard of what was made while we waited for
    // the lock.
    let there: bool = one(
        client,
        &format!(
            "SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                            WHERE n.nspname = '{}' AND c.relname = 'meta')",
            address.schema
        ),
    )
    .await?;
    if !there {
        return Ok(None);
    }
    one(client, &format!("SELECT version FROM {schema}.meta")).await.map(Some)
}

/// All in one transaction, behind a lock: whoever comes second finds it done.
async fn create(client: &Client, address: &Address) -> Result<(), StoreError> {
    let schema = address.quoted();
    let channel = format!("'{}'", address.channel());
    let lock = format!("BEGIN; SELECT pg_advisory_xact_lock(hashtext('tenure {}'))", address.schema);
    client.batch_execute(&lock).await.map_err(classify)?;
    if version(client, address).await?.is_some() {
        return client.batch_execute("COMMIT").await.map_err(classify);
    }
    let tables = [SCHEMA, LEDGER]
        .concat()
        .replace("{schema}", &schema)
        .replace("{channel}", &channel)
        .replace("{version}", &VERSION.to_string());
    let all = format!("CREATE SCHEMA IF NOT EXISTS {schema}; {tables} COMMIT");
    client.batch_execute(&all).await.map_err(classify)
}
