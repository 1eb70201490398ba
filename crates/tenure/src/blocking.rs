//! The library without `async`, for programs made of threads.
//!
#![cfg_attr(feature = "memory", doc = "```")]
#![cfg_attr(not(feature = "memory"), doc = "```ignore")]
//! use tenure::blocking::{self, Node};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = blocking::connect("memory:")?; // or "sqlite:./tenure.db"
//! let node = Node::start(tenure::Node::builder("worker-1"), store)?;
//! let pages = node.election("reports")?.lead(|leadership| {
//!     let mut pages = 0;
//!     while leadership.check().is_ok() && pages < 3 {
//!         pages += 1;
//!     }
//!     Ok::<_, std::io::Error>(pages)
//! })?;
//! assert_eq!(pages, 3);
//! node.close();
//! # Ok(())
//! # }
//! ```
//!
//! The session is renewed on the same thread of its own as ever, so work that blocks delays nothing. A thread cannot be
//! cancelled, though: the work must [`check`](Leadership::check) before every step, and end when that fails.
//!
//! # Panics
//! Every function that waits panics when it is called within an asynchronous runtime, which it would block.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tenure_core::{NameError, NodeId, Reason, Term};
use tenure_store::Store;
use tokio::runtime::{Builder, Handle};

use crate::election::Leader;
use crate::error::{ConnectError, ElectionError, LeadError, NotLeader, StartError};
use crate::{Gate, NodeBuilder};

/// Waits on the calling thread. Connections live on a thread that all of them share.
fn wait<F: Future>(future: F) -> F::Output {
    static RUNTIME: LazyLock<Handle> = LazyLock::new(|| {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system has descriptors left for a runtime");
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new().name(String::from("tenure-blocking"));
        let spawned = thread.spawn(move || runtime.block_on(std::future::pending::<()>()));
        spawned.expect("the system has a thread left for the runtime");
        handle
    });
    RUNTIME.block_on(future)
}

/// Connects to the store that the URL names: see [`connect`](crate::connect()).
///
/// # Errors
/// [`ConnectError`].
pub fn connect(url: impl AsRef<str>) -> Result<Arc<dyn Store>, ConnectError> {
    wait(crate::connect(url))
}

/// Connects to the default store, a SQLite file of this user: see [`connect_default`](crate::connect_default).
///
/// # Errors
/// [`ConnectError`].
pub fn connect_default() -> Result<Arc<dyn Store>, ConnectError> {
    wait(crate::connect_default())
}

/// Connects to the store that the environment names, as the command `tenure` does: see
/// [`connect_from_env`](crate::connect_from_env).
///
/// # Errors
/// [`ConnectError`].
pub fn connect_from_env() -> Result<Arc<dyn Store>, ConnectError> {
    wait(crate::connect_from_env())
}

/// A node: see [`tenure::Node`](crate::Node).
#[derive(Clone, Debug)]
pub struct Node(crate::Node);

impl Node {
    /// Registers the node and opens its session: see [`NodeBuilder::start`].
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(builder: NodeBuilder, store: Arc<dyn Store>) -> Result<Self, StartError> {
        wait(builder.start(store)).map(Self)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        self.0.id()
    }

    /// An election, by its name.
    ///
    /// # Errors
    /// [`NameError`] if the name is unusable.
    pub fn election(&self, name: impl AsRef<str>) -> Result<Election, NameError> {
        self.0.election(name).map(Election)
    }

    /// Gives up what it leads, and leaves: see [`tenure::Node::close`](crate::Node::close).
    pub fn close(&self) {
        wait(self.0.close());
    }
}

/// An election: see [`tenure::Election`](crate::Election).
#[derive(Clone, Debug)]
pub struct Election(crate::Election);

impl Election {
    /// Stands, and waits until elected.
    ///
    /// # Errors
    /// [`ElectionError`], as for [`tenure::Election::elected`](crate::Election::elected).
    pub fn elected(&self) -> Result<Leadership, ElectionError> {
        wait(self.0.elected()).map(Leadership)
    }

    /// The same, but for no longer than this; then the candidacy is withdrawn.
    ///
    /// # Errors
    /// As for [`elected`](Election::elected).
    pub fn elected_within(&self, limit: Duration) -> Result<Option<Leadership>, ElectionError> {
        match wait(async { tokio::time::timeout(limit, self.0.elected()).await }) {
            Ok(elected) => elected.map(|leadership| Some(Leadership(leadership))),
            Err(_) => Ok(None),
        }
    }

    /// Stands, calls `work` on this thread when elected, gives the lease back when `work` returns, and returns the
    /// same. If leadership was lost meanwhile, the result is discarded, and this node stands again.
    ///
    /// # Errors
    /// [`LeadError::Work`] with the work's own error; otherwise why this node does not stand any more.
    pub fn lead<T, E>(&self, mut work: impl FnMut(&Leadership) -> Result<T, E>) -> Result<T, LeadError<E>> {
        loop {
            let leadership = self.elected()?;
            let result = work(&leadership);
            match leadership.resign() {
                Ok(()) => return result.map_err(LeadError::Work),
                Err(NotLeader { reason: Reason::Resigned | Reason::Closing, .. }) => {
                    return result.map_err(LeadError::Work);
                }
                Err(NotLeader { reason: Reason::Ended, .. }) => {
                    return Err(LeadError::Election(ElectionError::Ended));
                }
                Err(_) => {} // the handle is dropped: the work has stopped
            }
        }
    }

    /// Who holds the lease, read from the store.
    ///
    /// # Errors
    /// As for [`tenure::Election::leader`](crate::Election::leader).
    pub fn leader(&self) -> Result<Option<Leader>, ElectionError> {
        wait(self.0.leader())
    }

    /// A gate before work that only the leader may do. It needs no `async` anyway.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.0.gate()
    }
}

/// Leadership under one term: see [`tenure::Leadership`](crate::Leadership). When it is dropped, the lease is given back.
pub struct Leadership(crate::Leadership);

impl Leadership {
    /// The term, if this process leads at this instant: see
    /// [`tenure::Leadership::check`](crate::Leadership::check).
    ///
    /// # Errors
    /// [`NotLeader`] with the reason.
    pub fn check(&self) -> Result<Term, NotLeader> {
        self.0.check()
    }

    /// The term: the fencing token.
    #[must_use]
    pub fn term(&self) -> Term {
        self.0.term()
    }

    /// Waits until leadership is over, and says why.
    #[must_use]
    pub fn lost(&self) -> Reason {
        wait(self.0.lost())
    }

    /// The same, but for no longer than this: `None` if it still leads then. A `sleep` between two steps of the work
    /// that ends early when there is nothing left to do.
    #[must_use]
    pub fn lost_within(&self, limit: Duration) -> Option<Reason> {
        wait(async { tokio::time::timeout(limit, self.0.lost()).await.ok() })
    }

    /// Gives the lease back, and waits until the store has it. The work must have stopped.
    ///
    /// # Errors
    /// [`NotLeader`] if there was nothing to give up.
    pub fn resign(&self) -> Result<(), NotLeader> {
        wait(self.0.resign())
    }

    /// The asynchronous handle, for what only that offers.
    #[must_use]
    pub const fn inner(&self) -> &crate::Leadership {
        &self.0
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
