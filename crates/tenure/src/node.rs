//! A node: one registered process, with its session and its elections.

use std::fmt;
use std::sync::Arc;

use tenure_core::{ElectionName, NameError, NodeId, SessionId};
use tenure_store::Store;

use crate::builder::NodeBuilder;
use crate::election::Election;
use crate::event::Subscription;
use crate::held::Holding;
use crate::link::{Command, Link};

/// A registered process: it keeps one session alive, however many elections hang from it.
///
/// Handles are cheap to clone. When the last handle is gone (of the node, its elections, their
/// streams, and its leaderships), everything is given up and the session is closed in the
/// background; [`close`](Node::close) does the same and waits for it.
#[derive(Clone)]
pub struct Node {
    link: Arc<Link>,
}

impl Node {
    /// The way to a node with this id, which no other live process may use.
    pub fn builder(id: impl Into<String>) -> NodeBuilder {
        NodeBuilder::new(id.into())
    }

    pub(crate) const fn new(link: Arc<Link>) -> Self {
        Self { link }
    }

    pub(crate) const fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.link.node
    }

    /// The store that it lives on.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.link.store
    }

    /// The open session; `None` while there is none. It changes when a session is lost and the next
    /// one is opened.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.held().now().session
    }

    /// Follows the session and its deadline.
    #[must_use]
    pub fn held(&self) -> Holding {
        Holding::new(self.link.status.held.subscribe())
    }

    /// What happens to this node and in its elections, from now on: elected, lost and why, another leader,
    /// in jeopardy. The log has the same under the same names (target `tenure`).
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.link.status.subscribe()
    }

    /// A handle for an election. Nothing is asked of the store yet.
    ///
    /// # Errors
    /// [`NameError`] if the name is unusable.
    pub fn election(&self, name: impl AsRef<str>) -> Result<Election, NameError> {
        Ok(Election::new(ElectionName::new(name)?, &self.link))
    }

    /// Gives up everything, waits until all work has been joined, and closes the session.
    ///
    /// Work under [`lead`](Election::lead) is cancelled, and aborted after its grace. A
    /// [`Leadership`](crate::Leadership) from [`elected`](Election::elected) is waited for until its
    /// last clone is dropped: the lease is never freed under running work. If the store cannot be
    /// reached, this takes until the session has lapsed. Closing twice does no harm.
    ///
    /// # Cancel safety
    /// Once polled, the node closes even if the future is dropped.
    pub async fn close(&self) {
        // No driver means that it has come to its end already.
        let _ = self.link.ask(Command::Close).await;
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("id", self.id()).field("session", &self.session()).finish()
    }
}
