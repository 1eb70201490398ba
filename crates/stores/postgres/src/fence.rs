//! Transactions of the application, carried out only while its lease is held.

use tenure_store::{Lease, StoreError, TransactionError};
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use crate::error::classify;

/// Locks the lease for the rest of the transaction, if it is held. A take-over, a resignation and a
/// deletion change its row, so they wait; a renewal does not.
const HOLD: &str = "
    SELECT pg_current_xact_id()::text
    FROM {schema}.elections e JOIN {schema}.sessions s ON s.id = e.session AND s.state = 'live'
    WHERE e.namespace = $1 AND e.election = $2 AND e.session = $3 AND e.term = $4
    FOR SHARE OF e";

/// A lease as the database has it.
pub(crate) struct Held<'a> {
    pub schema: &'a str,
    pub namespace: &'a str,
    pub lease: &'a Lease,
}

impl Held<'_> {
    /// The number of the transaction, if the lease is held in it.
    async fn transaction(&self, transaction: &Transaction<'_>) -> Result<Option<String>, StoreError> {
        // No such term was ever granted if it does not fit the column.
        let Ok(term) = i64::try_from(self.lease.term.number()) else { return Ok(None) };
        let session = self.lease.session.to_string();
        let (namespace, election) = (self.namespace, self.lease.election.as_str());
        let sql = HOLD.replace("{schema}", self.schema);
        let rows = transaction
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
        Ok(rows.first().map(|row| row.get(0)))
    }
}

/// Runs `work` in a transaction that is committed only if the lease is held before and after it, and
/// `still` (the leader's own clock) agrees both times.
pub(crate) async fn fenced<T, E>(
    transaction: Transaction<'_>,
    held: &Held<'_>,
    still: impl Fn() -> bool,
    work: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, TransactionError<E>> {
    transaction.batch_execute(&format!("SELECT {}.careful()", held.schema)).await.map_err(classify)?;
    let before = held.transaction(&transaction).await?;
    if before.is_none() || !still() {
        return Err(TransactionError::NotHeld);
    }
    let value = work(&transaction).await.map_err(TransactionError::Work)?;
    match held.transaction(&transaction).await? {
        Some(after) if Some(&after) != before.as_ref() => return Err(TransactionError::Broken),
        Some(_) if still() => {}
        _ => return Err(TransactionError::NotHeld),
    }
    transaction.commit().await.map_err(classify)?;
    Ok(value)
}
