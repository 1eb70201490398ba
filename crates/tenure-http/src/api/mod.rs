//! The API of a node.
//!
//! | file | what it answers |
//! |---|---|
//! | `cluster` | what the node knows of its cluster, from its own watch |
//! | `lists`, `events` | what is read from the store: elections, the history, and its stream |
//! | `probes`, `metrics` | for load balancers, orchestrators and Prometheus |
//! | `orders` | what changes something |
//! | `work` | for the program that works on this node's partitions |
//! | `answers` | every field of every answer |
//! | `manners` | what every request and every answer goes through |
//! | `description`, `page` | the OpenAPI document, and the page for people |

mod answers;
mod cluster;
mod description;
mod events;
mod lists;
mod manners;
mod metrics;
mod orders;
mod page;
mod probes;
mod work;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{Response, StatusCode};
use tenure::{ChildStatus, Cluster, Gate, Node, SupervisorStatus};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

pub use answers::Lease;
pub use description::description;

use crate::access::Access;
use crate::feed::Feed;
use crate::leader_only::BoxError;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::worker::Worker;

/// The longest body that is read.
const LONGEST_BODY: usize = 16 * 1024;
/// How many requests ask the store at a time; the others wait, for a while.
const ASK_AT_ONCE: usize = 8;
/// For how long.
const WAIT: Duration = Duration::from_secs(2);

/// How an API is served.
#[derive(Clone, Debug)]
pub struct ApiSettings {
    /// Who may do what.
    pub access: Access,
    /// How many may follow the history at a time.
    pub streams: usize,
    /// The life of this node's session.
    pub ttl: Duration,
    /// Whether this node stands for the election, or only watches.
    pub stands: bool,
    /// What is counted.
    pub metrics: Metrics,
    /// Work of this node that is supervised, to be shown: `Supervisor::watch` gives it.
    pub supervised: Option<watch::Receiver<SupervisorStatus>>,
    /// The worker that this node is, for a program beside it.
    pub worker: Option<Worker>,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            access: Access::default(),
            streams: 1024,
            ttl: Duration::from_secs(10),
            stands: true,
            metrics: Metrics::default(),
            supervised: None,
            worker: None,
        }
    }
}

/// The API of one node and its cluster. Clones are cheap, and answer the same.
#[derive(Clone)]
pub struct Api {
    inner: Arc<Inner>,
}

struct Inner {
    node: Node,
    cluster: Cluster,
    feed: Feed,
    settings: ApiSettings,
    streams: Arc<Semaphore>,
    turns: Semaphore,
    stopping: CancellationToken,
}

impl Api {
    /// Answers for this node and its cluster. It follows the history on the caller's Tokio runtime.
    #[must_use]
    pub fn new(node: Node, cluster: Cluster, settings: ApiSettings) -> Self {
        let (metrics, election) = (settings.metrics.clone(), cluster.gate().election().clone());
        let own = election.clone();
        let feed = Feed::start(node.store(), &election, settings.ttl / 3, move |event| {
            if event.election.as_ref() == Some(&own) {
                metrics.event(event);
            }
        });
        let streams = Arc::new(Semaphore::new(settings.streams));
        let (turns, stopping) = (Semaphore::new(ASK_AT_ONCE), CancellationToken::new());
        Self { inner: Arc::new(Inner { node, cluster, feed, settings, streams, turns, stopping }) }
    }

    /// The routes.
    pub fn router(&self) -> Router {
        let page = Router::new()
            .route("/", get(page::page))
            .route("/page.js", get(page::script))
            .route("/story.js", get(page::story))
            .route("/map.js", get(page::map))
            .route("/page.css", get(page::style))
            .method_not_allowed_fallback(manners::not_that_way);
        let page = page.layer(axum::middleware::from_fn_with_state(self.clone(), manners::known_by_name));
        self.mannerly(self.own().merge(page).fallback(manners::nothing_here))
    }

    /// The routes, and for everything else (also `/`) a program that this node stands before.
    pub fn in_front_of<S, B>(&self, program: S) -> Router
    where
        S: Service<Request, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        // What the program answers is its own: it is not touched.
        self.mannerly(self.own()).fallback_service(program)
    }

    fn mannerly(&self, router: Router<Self>) -> Router {
        router
            .layer(axum::middleware::from_fn_with_state(self.clone(), manners::name_the_leader))
            .with_state(self.clone())
    }

    /// What is answered by the node itself, whatever is behind it.
    fn own(&self) -> Router<Self> {
        let known_by_name = Router::new()
            .route("/openapi.json", get(description::openapi))
            .route("/cluster/status", get(cluster::status))
            .route("/cluster/leader", get(cluster::leader))
            .route("/cluster/health", get(cluster::health))
            .route("/cluster/nodes", get(cluster::nodes))
            .route("/cluster/elections", get(lists::elections))
            .route("/cluster/partitions", get(lists::partitions))
            .route("/cluster/partitions/mine", get(work::mine))
            .route("/cluster/partitions/work", post(work::work))
            .route("/cluster/partitions/release", post(work::release))
            .route("/cluster/events", get(events::events))
            .route("/cluster/resign", post(orders::resign))
            .route("/cluster/transfer", post(orders::transfer))
            .layer(axum::middleware::from_fn_with_state(self.clone(), manners::known_by_name));
        Router::new()
            .route("/leader", get(probes::leader).options(probes::leader_options))
            .route("/follower", get(probes::follower).options(probes::follower_options))
            .route("/live", get(probes::live))
            .route("/ready", get(probes::ready))
            .route("/metrics", get(metrics::metrics))
            .merge(known_by_name)
            .method_not_allowed_fallback(manners::not_that_way)
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
    }

    /// The node is on its way out: streams end, and it is not ready any more.
    pub fn stop(&self) {
        self.inner.stopping.cancel();
    }

    fn is_stopping(&self) -> bool {
        self.inner.stopping.is_cancelled()
    }

    fn stopping(&self) -> &CancellationToken {
        &self.inner.stopping
    }

    fn node(&self) -> &Node {
        &self.inner.node
    }

    fn cluster(&self) -> &Cluster {
        &self.inner.cluster
    }

    fn gate(&self) -> &Gate {
        self.inner.cluster.gate()
    }

    fn feed(&self) -> &Feed {
        &self.inner.feed
    }

    fn access(&self) -> &Access {
        &self.inner.settings.access
    }

    fn metrics(&self) -> &Metrics {
        &self.inner.settings.metrics
    }

    /// The children of supervised work, as they are doing now.
    fn children(&self) -> Vec<ChildStatus> {
        let supervised = self.inner.settings.supervised.as_ref();
        supervised.map_or_else(Vec::new, |status| status.borrow().children.clone())
    }

    fn worker(&self) -> Option<&Worker> {
        self.inner.settings.worker.as_ref()
    }

    fn ttl(&self) -> Duration {
        self.inner.settings.ttl
    }

    fn stands(&self) -> bool {
        self.inner.settings.stands
    }

    /// A place among those who follow the history, if there is one left.
    fn stream_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.inner.streams).try_acquire_owned().ok()
    }

    /// A turn to ask the store: however many requests come, the store is asked by a few at a time.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, Problem> {
        let busy =
            || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this node is busy; ask again in a moment");
        let turn = tokio::time::timeout(WAIT, self.inner.turns.acquire()).await.map_err(|_| busy())?;
        turn.map_err(|_| busy())
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("node", self.node()).finish_non_exhaustive()
    }
}
