//! What a node is to be, checked before anything is touched.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Drift, Machine, NodeId, Settings};
use tenure_store::{Labels, NodeInfo, Store};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::driver::{self, Plan, Start};
use crate::error::StartError;
use crate::event::{NodeEvent, Observer};
use crate::health::{self, Health, Probe, ProbeOutcome};
use crate::link::{Link, Status};
use crate::node::Node;
use crate::page::Page;

const GRACE: Duration = Duration::from_secs(5);

/// Describes a node; [`start`](NodeBuilder::start) makes it. The defaults are right for most.
#[derive(Clone)]
#[must_use = "a builder does nothing until it is started"]
pub struct NodeBuilder {
    id: String,
    ttl: Duration,
    renew_every: Option<Duration>,
    poll_every: Option<Duration>,
    takeover_delay: Duration,
    stop_margin: Option<Duration>,
    drift: u16,
    eligible: bool,
    priority: i32,
    failback: bool,
    address: Option<String>,
    hostname: Option<String>,
    labels: Labels,
    probe: Option<Probe>,
    observer: Option<Observer>,
    grace: Duration,
    start_timeout: Option<Duration>,
}

impl NodeBuilder {
    pub(crate) fn new(id: String) -> Self {
        let defaults = Settings::default();
        Self {
            id,
            ttl: defaults.ttl,
            renew_every: None,
            poll_every: None,
            takeover_delay: defaults.takeover_delay,
            stop_margin: None,
            drift: defaults.drift.thousandths(),
            eligible: defaults.eligible,
            priority: defaults.priority,
            failback: false,
            address: None,
            hostname: None,
            labels: Labels::default(),
            probe: None,
            observer: None,
            grace: GRACE,
            start_timeout: None,
        }
    }

    /// How long the session lives without renewal: what a crash costs at most (default 10 s).
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How often the session is renewed (default ttl/3).
    pub const fn renew_every(mut self, interval: Duration) -> Self {
        self.renew_every = Some(interval);
        self
    }

    /// How often a candidate looks where the store cannot push news (default ttl/6).
    pub const fn poll_every(mut self, interval: Duration) -> Self {
        self.poll_every = Some(interval);
        self
    }

    /// How long this candidate waits after a leader's loss, against flapping (default none).
    pub const fn takeover_delay(mut self, delay: Duration) -> Self {
        self.takeover_delay = delay;
        self
    }

    /// How long before its lease could be granted to another a leader is told to stop (default
    /// ttl/20). Work that is lost unwillingly has half of it until it is aborted.
    pub const fn stop_margin(mut self, margin: Duration) -> Self {
        self.stop_margin = Some(margin);
        self
    }

    /// By how much the clocks of nodes may differ in rate (default 10 %).
    pub const fn drift(mut self, drift: Drift) -> Self {
        self.drift = drift.thousandths();
        self
    }

    /// The same, in thousandths; more than 500 is refused at the start.
    pub const fn drift_thousandths(mut self, thousandths: u16) -> Self {
        self.drift = thousandths;
        self
    }

    /// Whether this node may lead at all (default true). If not, it only observes.
    pub const fn eligible(mut self, eligible: bool) -> Self {
        self.eligible = eligible;
        self
    }

    /// Higher stands first (default 0). A leader is not pushed out by a higher one, unless that one
    /// [fails back](NodeBuilder::failback).
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Whether this node asks a leader of lower priority to make way for it (default false), once it has stood
    /// behind that one for a ttl, and if it is well then. It is a hand-over like any other: the work of the leader
    /// stops first.
    pub const fn failback(mut self, failback: bool) -> Self {
        self.failback = failback;
        self
    }

    /// Where the API of this node is reached, for others to read.
    pub fn address(mut self, url: impl Into<String>) -> Self {
        self.address = Some(url.into());
        self
    }

    /// The machine's name, for others to read (default: what the system says).
    pub fn hostname(mut self, hostname: impl Into<String>) -> Self {
        self.hostname = Some(hostname.into());
        self
    }

    /// What else there is to say of this node, such as `zone=eu-1`, for others to read.
    pub fn labels(mut self, labels: Labels) -> Self {
        self.labels = labels;
        self
    }

    /// A probe of the application's health, without which a wedged application goes on leading.
    ///
    /// It runs on the Tokio runtime in which [`start`](NodeBuilder::start) is called, every ttl/6,
    /// and has as long to answer. While it answers false, or has not passed for ttl/3, this node
    /// leads nothing; nor before it has passed for the first time.
    ///
    /// It answers with a `bool`, or with a `Result<(), E>` whose error says what is wrong. That is written to the store
    /// while the probe fails: the list of nodes shows it ([`NodeRecord::unhealthy`](crate::NodeRecord::unhealthy)), and
    /// the history has `node_unhealthy` and `node_healthy`. Only the first 256 bytes are kept.
    pub fn health<P, F>(mut self, probe: P) -> Self
    where
        P: Fn() -> F + Send + Sync + 'static,
        F: Future<Output: ProbeOutcome> + Send + 'static,
    {
        self.probe = Some(health::probe(probe));
        self
    }

    /// Told of every event of this node, and of every request to the store: for metrics, say. Unlike a
    /// [subscriber](crate::Node::subscribe), it misses none.
    ///
    /// It runs on the thread that renews the session, so it must count and return, and never wait.
    pub fn observer(mut self, observer: impl Fn(&NodeEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// How long work under [`lead`](crate::Election::lead) may take to stop after a willing end
    /// (default 5 s). It is then aborted.
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long [`start`](NodeBuilder::start) tries (default: until its future is dropped).
    pub const fn start_timeout(mut self, limit: Duration) -> Self {
        self.start_timeout = Some(limit);
        self
    }

    fn settings(&self) -> Result<Settings, StartError> {
        let defaults = Settings::new(self.ttl);
        let thousandths = self.drift;
        let settings = Settings {
            ttl: self.ttl,
            renew_every: self.renew_every.unwrap_or(defaults.renew_every),
            poll_every: self.poll_every.unwrap_or(defaults.poll_every),
            takeover_delay: self.takeover_delay,
            stop_margin: self.stop_margin.unwrap_or(defaults.stop_margin),
            drift: Drift::from_thousandths(thousandths).ok_or(StartError::Drift { thousandths })?,
            eligible: self.eligible,
            priority: self.priority,
        };
        settings.validate()?;
        Ok(settings)
    }

    /// Checks the node's name and settings, as [`start`](NodeBuilder::start) does first: for programs that want to know
    /// before they connect to a store.
    ///
    /// # Errors
    /// [`StartError`], with the name or the setting that cannot work.
    pub fn validate(&self) -> Result<(), StartError> {
        NodeId::new(&self.id)?;
        self.settings().map(drop)
    }

    /// Registers the node and opens its session. Names and settings are checked before anything is
    /// touched.
    ///
    /// While the store cannot be reached, it keeps trying (with a warning in the log) until it can
    /// be, until [`start_timeout`](NodeBuilder::start_timeout), or until the future is dropped.
    /// While an earlier session with the same node id has not lapsed, it waits: if that falls
    /// silent for its whole ttl, as after a crash, its node id is taken over; if it shows signs of
    /// life, another process uses the id, and it is [`StartError::NodeIdTaken`].
    ///
    /// # Errors
    /// [`StartError`].
    ///
    /// # Cancel safety
    /// Dropping the future gives up: a session that was opened meanwhile is closed in the
    /// background.
    pub async fn start(self, store: Arc<dyn Store>) -> Result<Node, StartError> {
        let id = NodeId::new(&self.id)?;
        let settings = self.settings()?;
        let seed = seed()?;
        let machine = Machine::new(id.clone(), settings, store.capabilities(), seed)?;
        let health = match &self.probe {
            None => None,
            Some(probe) => {
                let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
                Some(Health::start(Arc::clone(probe), &runtime, settings.ttl))
            }
        };
        let (send, commands) = mpsc::unbounded_channel();
        let (opened, outcome) = oneshot::channel();
        let status = Arc::new(Status::default());
        let hostname = self.hostname.unwrap_or_else(hostname);
        let labels = self.labels.with_priority(self.priority);
        let info = NodeInfo { address: self.address, labels, ..NodeInfo::new(id.clone(), hostname) };
        driver::spawn(Plan {
            machine,
            info,
            store: Arc::clone(&store),
            status: Arc::clone(&status),
            page: Arc::new(Page::new()?),
            commands,
            health,
            observer: self.observer,
            settings,
            failback: self.failback,
            grace: self.grace,
            margin: settings.stop_margin / 2,
            start: Start { opened, limit: self.start_timeout },
        })?;
        let link = Arc::new(Link::new(id, store, status, settings.drift, send));
        outcome.await.unwrap_or(Err(StartError::DriverDied))?;
        Ok(Node::new(link))
    }
}

fn seed() -> Result<u64, StartError> {
    getrandom::u64().map_err(|error| StartError::System(std::io::Error::other(error)))
}

fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

impl fmt::Debug for NodeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeBuilder").field("id", &self.id).field("ttl", &self.ttl).finish_non_exhaustive()
    }
}
