//! Transactions of the application, which hold its lease.

use std::sync::Arc;

use mysql_async::prelude::Queryable;
use mysql_async::{Error, IsolationLevel, Transaction, TxOpts};
use tenure_sql::{Fenced, Hold, Value, enter, leave};
use tenure_store::{Lease, StoreError, TransactionError};

use crate::MySqlStore;
use crate::connect::connect;
use crate::database::calling;
use crate::error::{DOES_NOT_EXIST, classify};

/// Writes to the application's own tables in the store's database, if and only if the lease is held.
///
/// `work` runs in one transaction (READ COMMITTED), on a connection of its own. The lease's row is locked in
/// that transaction before the work and looked at again before the commit, and `still` (the leader's own
/// clock) with it. So what is committed was written by the leader of that term, and no successor can
/// have been granted a term before the commit: it waits. Keep it short: if the server hears of no statement for as
/// long as the session's ttl (in whole seconds), it ends the connection, and nothing is written. A statement that ends
/// transactions (most that define tables do) breaks it.
///
/// # Errors
/// [`TransactionError`].
///
/// # Cancel safety
/// Dropped before `work` has ended: nothing is written. Dropped later: unknown.
pub async fn transaction<T, E>(
    store: &MySqlStore,
    lease: Lease,
    still: impl Fn() -> bool,
    work: impl AsyncFnOnce(&mut Transaction<'_>) -> Result<T, E>,
) -> Result<T, TransactionError<E>> {
    let database = store.database();
    let mut idle = database.idle.lock().await.take();
    // It may have ended since, and the driver knows only when it is used.
    if let Some(wire) = &mut idle
        && wire.connection.ping().await.is_err()
    {
        idle = None;
    }
    let mut wire = match idle {
        Some(wire) => wire,
        None => {
            let database = Arc::clone(database);
            store.engine().run(async move { connect(&database.address).await }).await?
        }
    };
    let mut options = TxOpts::default();
    options.with_isolation_level(IsolationLevel::ReadCommitted);
    // Dropped unless all goes well: then nobody knows what is still on its way, and the connection is ended.
    let asking = wire.asking().await.map_err(failed)?;
    let transaction = wire.connection.start_transaction(options).await.map_err(failed)?;
    let namespace = store.options().namespace.as_str();
    let mut held = Held { transaction, namespace, lease: &lease, marked: false };
    enter(&mut held, &still).await?;
    let value = work(&mut held.transaction).await.map_err(TransactionError::Work)?;
    leave(held, &still).await?;
    asking.answered();
    *database.idle.lock().await = Some(wire);
    Ok(value)
}

fn failed(error: Error) -> StoreError {
    classify(error).error
}

/// A transaction, and the lease that it needs.
struct Held<'a> {
    transaction: Transaction<'a>,
    namespace: &'a str,
    lease: &'a Lease,
    /// A savepoint was made. It is gone if the transaction has ended since.
    marked: bool,
}

impl Fenced for Held<'_> {
    async fn hold(&mut self) -> Result<Hold, StoreError> {
        if self.marked {
            match self.transaction.query_drop("RELEASE SAVEPOINT tenure_fence").await {
                Err(Error::Server(refused)) if refused.code == DOES_NOT_EXIST => return Ok(Hold::Broken),
                released => released.map_err(failed)?,
            }
        }
        // No such term was ever granted if it does not fit the column.
        let Ok(term) = i64::try_from(self.lease.term.number()) else { return Ok(Hold::NotHeld) };
        let text = |words: &str| Value::Text(Some(words.to_owned()));
        let (election, session) = (self.lease.election.as_str(), self.lease.session.to_string());
        let values = [text(self.namespace), text(election), text(&session), Value::Number(Some(term))];
        let held: Option<bool> =
            self.transaction.query_first(calling("hold", &values)).await.map_err(failed)?;
        self.transaction.query_drop("SAVEPOINT tenure_fence").await.map_err(failed)?;
        self.marked = true;
        Ok(if held == Some(true) { Hold::Held } else { Hold::NotHeld })
    }

    async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().await.map_err(failed)
    }
}
