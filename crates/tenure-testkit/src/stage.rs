//! What tests with nodes share, whatever their store: nodes, waits that cannot hang, and a witness.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure::{Leadership, Node, NodeBuilder};
use tenure_store::clock;

use crate::checker;
pub use crate::patience::HANG;

/// The one election of most tests.
pub const ELECTION: &str = "reports";

/// Waits, but not forever.
///
/// # Panics
/// If it takes too long.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("this takes too long: something hangs")
}

/// Waits until something is so.
///
/// # Panics
/// If it takes too long.
pub async fn until<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    soon(async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A node for tests in which nothing is to lapse, though much happens to its connections.
pub fn calm(id: &str) -> NodeBuilder {
    Node::builder(id).ttl(Duration::from_secs(30)).renew_every(Duration::from_millis(500))
}

/// A node for tests in which this very node is to lapse; all others are [`calm`]. It renews often, so that it does not
/// lapse before it is to: a busy machine may let it, or the store's disk, stand still for seconds.
pub fn brief(id: &str) -> NodeBuilder {
    Node::builder(id).ttl(Duration::from_secs(5)).renew_every(Duration::from_millis(500))
}

/// Starts a node on that store.
///
/// # Panics
/// If it cannot.
pub async fn start(builder: NodeBuilder, url: &str) -> Node {
    let store = soon(tenure::connect(url)).await.expect("the store is there");
    soon(builder.start(store)).await.expect("the node starts")
}

/// Stands until elected.
///
/// # Panics
/// If it cannot, or never is.
pub async fn lead(node: &Node) -> Leadership {
    let election = node.election(ELECTION).expect("a good name");
    soon(election.elected()).await.expect("it is elected")
}

/// Stands in the background.
///
/// # Panics
/// If it cannot.
#[must_use]
pub fn stand(node: &Node) -> tokio::task::JoinHandle<Leadership> {
    let election = node.election(ELECTION).expect("a good name");
    tokio::spawn(async move { election.elected().await.expect("it is elected") })
}

/// Waits until the node has renewed its session so many times more.
///
/// # Panics
/// If it does not.
pub async fn renewals(node: &Node, count: u32) {
    let mut held = node.held();
    let mut until = held.now().until;
    for _ in 0..count {
        while held.now().until <= until {
            soon(held.changed()).await.expect("the node is alive");
        }
        until = held.now().until;
    }
}

/// Watches a leadership on a thread of its own, and tells when its check has passed.
pub struct Witness {
    over: Arc<AtomicBool>,
    watch: JoinHandle<checker::Leadership>,
}

impl Witness {
    /// Watches from now on.
    ///
    /// # Panics
    /// If it does not lead.
    #[must_use]
    pub fn of(node: &Node, leadership: &Leadership) -> Self {
        let (name, leadership) = (node.id().to_string(), leadership.clone());
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        // Here, and not on the thread: that may begin when the caller has gone on and resigned. It led at the
        // instant before a check that passed, because it was elected before it was given to us.
        let from = clock::now().as_nanos();
        assert!(leadership.check().is_ok(), "it leads when the watch begins");
        let watch = std::thread::spawn(move || {
            let mut until = from;
            loop {
                // As above: what is told is never too long.
                let before = clock::now().as_nanos();
                if leadership.check().is_err() {
                    break;
                }
                until = before;
                if told.load(Ordering::Acquire) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            checker::Leadership {
                election: leadership.election().to_string(),
                node: name,
                pid: std::process::id(),
                term: leadership.term().number(),
                from,
                until,
            }
        });
        Self { over, watch }
    }

    /// Ends the watch, if the leadership has not.
    ///
    /// # Panics
    /// If it did not lead when the watch began.
    pub fn tell(self) -> checker::Leadership {
        self.over.store(true, Ordering::Release);
        self.watch.join().expect("the watch ends well")
    }
}
