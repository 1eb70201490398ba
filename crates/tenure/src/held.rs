//! What a node holds, for whoever must act on its deadline from outside: a guardian process, say.

use std::fmt;

use tenure_core::{Instant, SessionId};
use tokio::sync::watch;

/// A session, and until when everything under it is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The open session; `None` while there is none.
    pub session: Option<SessionId>,
    /// On the boot clock of this machine. From then on every check under the session fails; nobody
    /// else is granted its leases before a further stop margin has passed.
    pub until: Instant,
}

/// Follows what a node holds. It does not keep the node open.
#[derive(Clone)]
pub struct Holding(watch::Receiver<Option<Held>>);

impl Holding {
    /// `None` stands for the node's end.
    pub(crate) const fn new(held: watch::Receiver<Option<Held>>) -> Self {
        Self(held)
    }

    /// What is held by what the driver has said last. To find out whether a lease is held right now,
    /// use [`Leadership::check`](crate::Leadership::check).
    #[must_use]
    pub fn now(&self) -> Held {
        self.0.borrow().unwrap_or_default()
    }

    /// Whether the node has come to its end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.borrow().is_none()
    }

    /// Waits for the next change: a renewal, a loss, another session. `None` once the node has come
    /// to its end.
    ///
    /// # Cancel safety
    /// Safe: no change is lost, though only the latest is seen.
    pub async fn changed(&mut self) -> Option<Held> {
        if self.0.borrow().is_none() {
            return None;
        }
        self.0.changed().await.ok()?;
        *self.0.borrow_and_update()
    }
}

impl fmt::Debug for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Holding").field(&self.now()).finish()
    }
}
