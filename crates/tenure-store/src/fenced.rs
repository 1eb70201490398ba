use crate::error::StoreError;

/// Why a fenced transaction of the application did not happen. Unless said otherwise, nothing was
/// written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError<E> {
    /// The lease is not held any more. Nothing was written.
    #[error("the lease is not held any more, and nothing was written")]
    NotHeld,
    /// The work itself failed. Nothing was written.
    #[error("the work failed, and nothing was written: {0}")]
    Work(#[source] E),
    /// The work ended its transaction, so that what followed was outside of the fence. SQLite has
    /// written nothing of it; PostgreSQL and MySQL have, up to there, while the lease was held.
    #[error(
        "the work ended its own transaction (as ROLLBACK, COMMIT or `INSERT OR ROLLBACK` do); leave its end to Tenure"
    )]
    Broken,
    /// The store gave no answer; its error says what is true now.
    #[error(transparent)]
    Store(#[from] StoreError),
}
