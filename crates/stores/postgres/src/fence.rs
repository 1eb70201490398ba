//! Transactions of the application, which hold its lease.

use std::sync::Arc;

use tenure_sql::{Fenced, Hold, enter, leave};
use tenure_store::{Lease, StoreError, TransactionError};
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use crate::PostgresStore;
use crate::connect::connect;
use crate::error::classify;

/// Locks the lease for the rest of the transaction, if it is held. A client that is stopped between two statements must
/// not keep a successor waiting for ever: if none comes for as long as a lease lasts, the server ends the transaction.
const HOLD: &str = "
    SELECT pg_current_xact_id()::text, set_config('idle_in_transaction_session_timeout', least(s.ttl_ms, 2147483647,
        nullif(extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval) * 1000, 0))
        ::bigint::text, true)
    FROM {schema}.elections e JOIN {schema}.sessions s ON s.id = e.session AND s.state = 'live'
    WHERE e.namespace = $1 AND e.election = $2 AND e.session = $3 AND e.term = $4
    FOR SHARE OF e";

/// Work that nobody waits for any more must not keep a successor waiting: from PostgreSQL 14 on, the server
/// looks whether its client is still there.
const CAREFUL: &str = "
    SELECT {schema}.careful(), CASE WHEN current_setting('client_connection_check_interval', true) IS NOT NULL
        THEN set_config('client_connection_check_interval', '1s', true) END";

/// Writes to the application's own tables in the store's database, if and only if the lease is held.
///
/// `work` runs in one transaction, on a connection of its own. The lease's row is locked in that
/// transaction before the work and looked at again before the commit, and `still` (the leader's own
/// clock) with it. So what is committed was written by the leader of that term, and no successor can
/// have been granted a term before the commit: it waits. Keep it short: if the server hears of no statement for as
/// long as the session's ttl, it ends the transaction, and nothing is written.
///
/// # Errors
/// [`TransactionError`].
///
/// # Cancel safety
/// Dropped before `work` has ended: nothing is written. Dropped later: unknown.
pub async fn transaction<T, E>(
    store: &PostgresStore,
    lease: Lease,
    still: impl Fn() -> bool,
    work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, TransactionError<E>> {
    let database = store.database();
    let idle = database.idle.lock().await.take().filter(|wire| !wire.client.is_closed());
    let mut wire = match idle {
        Some(wire) => wire,
        None => {
            let database = Arc::clone(database);
            store.engine().run(async move { connect(&database.address, None).await }).await?
        }
    };
    let (schema, namespace) = (database.address.quoted(), store.options().namespace.as_str());
    let transaction = wire.client.transaction().await.map_err(classify)?;
    transaction.batch_execute(&CAREFUL.replace("{schema}", &schema)).await.map_err(classify)?;
    let mut held = Held { transaction, schema: &schema, namespace, lease: &lease, first: None };
    enter(&mut held, &still).await?;
    let value = work(&held.transaction).await.map_err(TransactionError::Work)?;
    leave(held, &still).await?;
    // Only now: after an error, nobody knows what is still on its way there.
    wire.replicated()?;
    *database.idle.lock().await = Some(wire);
    Ok(value)
}

/// A transaction, and the lease that it needs.
struct Held<'a> {
    transaction: Transaction<'a>,
    schema: &'a str,
    namespace: &'a str,
    lease: &'a Lease,
    /// The number of the transaction in which the lease was locked first.
    first: Option<String>,
}

impl Fenced for Held<'_> {
    async fn hold(&mut self) -> Result<Hold, StoreError> {
        // No such term was ever granted if it does not fit the column.
        let Ok(term) = i64::try_from(self.lease.term.number()) else { return Ok(Hold::NotHeld) };
        let session = self.lease.session.to_string();
        let (namespace, election) = (self.namespace, self.lease.election.as_str());
        let sql = HOLD.replace("{schema}", self.schema);
        let rows = self
            .transaction
            .query_typed(
                &sql,
                &[
                    (&namespace, Type::TEXT),
                    (&election, Type::TEXT),
                    (&session, Type::TEXT),
                    (&term, Type::INT8),
                ],
            )
            .await
            .map_err(classify)?;
        let Some(number) = rows.first().map(|row| row.get::<_, String>(0)) else { return Ok(Hold::NotHeld) };
        let first = self.first.get_or_insert_with(|| number.clone());
        Ok(if *first == number { Hold::Held } else { Hold::Broken })
    }

    async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await.map_err(classify)
    }
}
