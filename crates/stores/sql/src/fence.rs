//! Transactions of the application, carried out only while its lease is held.

use std::future::Future;

use tenure_store::{StoreError, TransactionError};

/// What a look at the lease inside of a transaction has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is held, and locked for the rest of the transaction: a take-over, a resignation and a deletion
    /// wait; a renewal does not.
    Held,
    /// It is not held.
    NotHeld,
    /// This is another transaction than the one in which it was looked at first.
    Broken,
}

/// A transaction of the application.
pub trait Fenced {
    /// Locks the lease, if it is held.
    fn hold(&mut self) -> impl Future<Output = Result<Hold, StoreError>> + Send;

    /// Ends the transaction. What it wrote is on disk.
    fn commit(self) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Before the work: it may begin if the lease is held, and `still` (the leader's own clock) agrees.
///
/// # Errors
/// [`TransactionError`]: why it may not.
pub async fn enter<E>(
    transaction: &mut impl Fenced,
    still: impl Fn() -> bool,
) -> Result<(), TransactionError<E>> {
    match transaction.hold().await? {
        Hold::Held if still() => Ok(()),
        _ => Err(TransactionError::NotHeld),
    }
}

/// After the work: it is committed only if the lease is held all the same, and `still` agrees.
///
/// # Errors
/// [`TransactionError`]: why it was not committed, or may not have been.
pub async fn leave<E>(
    mut transaction: impl Fenced,
    still: impl Fn() -> bool,
) -> Result<(), TransactionError<E>> {
    match transaction.hold().await? {
        Hold::Broken => Err(TransactionError::Broken),
        Hold::Held if still() => Ok(transaction.commit().await?),
        Hold::Held | Hold::NotHeld => Err(TransactionError::NotHeld),
    }
}
