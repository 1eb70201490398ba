use std::error::Error as StdError;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a store gave no answer, and what is now true of it. Being refused is not an error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing changed. Trying again may help: not reachable, locked, disk full, read-only.
    #[error("the store is unavailable: {0}")]
    Unavailable(#[source] BoxError),
    /// The request may or may not have taken effect. Ask again with the same words.
    #[error("the store did not answer, so the request may have taken effect: {0}")]
    Indeterminate(#[source] BoxError),
    /// The session is over, and everything under it is void.
    #[error("the session is over on the store, and everything held under it is void")]
    SessionLost,
    /// Retrying cannot help: a human has to change something. Nothing changed.
    #[error("{0}")]
    Misconfigured(#[source] BoxError),
}

/// There is no store of Tenure's, and connecting was not to create one. The text says where.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}; check the store URL, or start a node with it, which sets the store up (if nodes are running that use it, put it back instead)"
)]
pub struct NotSetUp(pub String);

impl StoreError {
    /// [`StoreError::Misconfigured`], because there is no store: [`NotSetUp`].
    pub fn not_set_up(place: impl Into<String>) -> Self {
        Self::Misconfigured(Box::new(NotSetUp(place.into())))
    }

    /// Whether there is no store, and connecting was not to create one.
    #[must_use]
    pub fn is_not_set_up(&self) -> bool {
        matches!(self, Self::Misconfigured(reason) if reason.is::<NotSetUp>())
    }

    /// [`StoreError::Unavailable`] for this reason.
    pub fn unavailable(reason: impl Into<BoxError>) -> Self {
        Self::Unavailable(reason.into())
    }

    /// [`StoreError::Indeterminate`] for this reason.
    pub fn indeterminate(reason: impl Into<BoxError>) -> Self {
        Self::Indeterminate(reason.into())
    }

    /// [`StoreError::Misconfigured`] for this reason: say what is wrong and what to do.
    pub fn misconfigured(reason: impl Into<BoxError>) -> Self {
        Self::Misconfigured(reason.into())
    }
}
