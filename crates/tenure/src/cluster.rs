//! The cluster as one node sees it: who belongs to it, who leads it, and whether enough of them live.
//!
//! Every node watches. The one that leads also cleans up: it retires nodes that have been silent for
//! their whole life, whether or not they held anything, forgets those that are long gone, and says so in
//! the history when too few are left.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tenure_core::{Age, Change, Instant, Members, NodeState, Record, SessionId, Sighting, Term};
use tenure_store::clock::{self, Timer};
use tenure_store::{Declaration, Hint, Hints, Lease, NodeRecord, Store, StoreError, newest};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::ElectionError;
use crate::gate::Gate;
use crate::held::Holding;
use crate::node::Node;
use crate::timer::AsyncTimer;

/// Two looks are at least so far apart, however much news there is.
const BREATH: Duration = Duration::from_millis(10);
/// How often a leader forgets old nodes.
const TIDY_EVERY: Duration = Duration::from_secs(600);

/// What is to be watched, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterSettings {
    /// How many nodes must live for the cluster to be whole; below it is degraded.
    pub minimum: usize,
    /// How often to look besides news: a third of the ttl is about right.
    pub look_every: Duration,
    /// How long a node that is no more is still listed.
    pub forget_after: Duration,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        let look_every = Duration::from_secs(10) / 3;
        Self { minimum: 1, look_every, forget_after: Duration::from_secs(24 * 3600) }
    }
}

/// Follows the cluster of a node. Clones are cheap; the watch ends with the last one.
#[derive(Clone)]
pub struct Cluster {
    gate: Gate,
    view: watch::Receiver<Arc<View>>,
    minimum: usize,
    _watch: Arc<DropGuard>,
}

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// As the store has it.
    pub record: NodeRecord,
    /// Whether it lives: registered, and not found silent for its whole life by this node.
    pub lives: bool,
}

/// The cluster at one moment.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Every node that the store remembers, by id.
    pub members: Vec<Member>,
    /// The election that makes the leader.
    pub record: Record,
    /// When the store said so, on the boot clock; `None`: it has not yet.
    pub seen: Option<Instant>,
    /// Why the store has said nothing since, if it was asked.
    pub trouble: Option<String>,
}

impl View {
    /// How many nodes live.
    #[must_use]
    pub fn live(&self) -> usize {
        self.members.iter().filter(|member| member.lives).count()
    }

    /// How old this knowledge is; `None` if there is none.
    #[must_use]
    pub fn age(&self, now: Instant) -> Option<Duration> {
        self.seen.map(|seen| now.since(seen))
    }

    /// How long ago the leader showed a sign of life, at least as far as this view can tell, and how
    /// long its session lives without another. `None` if nobody is known to lead.
    #[must_use]
    pub fn pulse(&self, now: Instant) -> Option<(Duration, Duration)> {
        let pulse = self.record.holder.as_ref()?.pulse;
        let age = match pulse.age {
            Age::Unknown => Duration::ZERO,
            Age::Exact(age) | Age::Told { age, .. } => age,
        };
        Some((age + self.age(now)?, pulse.ttl))
    }

    /// The node with this session.
    #[must_use]
    pub fn member(&self, session: SessionId) -> Option<&Member> {
        self.members.iter().find(|member| member.record.session() == session)
    }
}

impl Node {
    /// Watches the cluster on the caller's Tokio runtime. The leader of the gate's election cleans up,
    /// for as long as it leads: something else has to stand for it.
    ///
    /// # Errors
    /// [`ElectionError::NoRuntime`] outside of a runtime, [`ElectionError::Store`] if the system has no
    /// timer left.
    pub fn cluster(&self, gate: &Gate, settings: ClusterSettings) -> Result<Cluster, ElectionError> {
        let runtime = Handle::try_current().map_err(|_| ElectionError::NoRuntime)?;
        let timer = Timer::nonblocking()
            .and_then(AsyncTimer::new)
            .map_err(|error| ElectionError::Store(StoreError::unavailable(error)))?;
        let (publish, view) = watch::channel(Arc::default());
        let over = CancellationToken::new();
        let store = Arc::clone(self.store());
        let watcher = Watcher {
            hints: Some(store.news()),
            store,
            gate: gate.clone(),
            held: self.held(),
            session: None,
            members: self.members(settings.minimum),
            settings,
            timer,
            publish,
            grants: gate.grants(),
            declared: None,
            tidied: None,
        };
        let ended = over.clone();
        runtime.spawn(async move {
            tokio::select! {
                () = ended.cancelled() => {}
                () = watcher.run() => {}
            }
        });
        let watch = Arc::new(over.drop_guard());
        Ok(Cluster { gate: gate.clone(), view, minimum: settings.minimum, _watch: watch })
    }
}

impl Node {
    /// Nobody is known yet. Silence is timed with the drift that this node was told, as its own elections do.
    fn members(&self, minimum: usize) -> Members {
        let judge = self.store().capabilities().expiry;
        Members::new(self.id().clone(), minimum, self.link().drift, judge)
    }
}

impl Cluster {
    /// The cluster as it was last seen.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.borrow())
    }

    /// The gate that says whether this node leads it.
    #[must_use]
    pub const fn gate(&self) -> &Gate {
        &self.gate
    }

    /// How many nodes must live.
    #[must_use]
    pub const fn minimum(&self) -> usize {
        self.minimum
    }

    /// Waits for the next look; `None` once the node is closed.
    ///
    /// # Cancel safety
    /// Safe: no look is lost, though only the latest is seen.
    pub async fn changed(&mut self) -> Option<Arc<View>> {
        self.view.changed().await.ok()?;
        Some(Arc::clone(&self.view.borrow_and_update()))
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("gate", &self.gate).finish_non_exhaustive()
    }
}

struct Watcher {
    store: Arc<dyn Store>,
    hints: Option<Hints>,
    gate: Gate,
    held: Holding,
    /// This node's own, as it was at the last look.
    session: Option<SessionId>,
    members: Members,
    settings: ClusterSettings,
    timer: AsyncTimer,
    publish: watch::Sender<Arc<View>>,
    /// Changes whenever a term of this node begins: news of it may come before it is known here.
    grants: watch::Receiver<u64>,
    /// What was last said of the cluster, under which term.
    declared: Option<(Term, bool)>,
    /// When old nodes were last forgotten.
    tidied: Option<Instant>,
}

impl Watcher {
    async fn run(mut self) {
        loop {
            let looked = self.look().await;
            self.tell_changes();
            if looked && let Ok(term) = self.gate.check() {
                self.clean_up(term).await;
            }
            tokio::time::sleep(BREATH).await;
            if self.wait().await.is_none() {
                return;
            }
        }
    }

    /// Reads who is there, and who leads. Whether the store has said.
    async fn look(&mut self) -> bool {
        // A session that was lost may mean a store that is not what it was.
        let session = self.held.now().session;
        if self.session.is_some() && self.session != session {
            self.members.distrust(clock::now());
        }
        self.session = session;
        let sent = clock::now();
        let election = self.gate.election().clone();
        let both = async { tokio::try_join!(self.store.nodes(), self.store.read(election)) };
        let answer = in_time(self.patience(), both).await;
        let received = clock::now();
        match answer {
            Ok((nodes, record)) => {
                let records = newest(nodes.value);
                let sightings: Vec<_> = records.iter().map(sighting).collect();
                self.members.look(nodes.store, &sightings, sent, received);
                let members = records.into_iter().map(|record| {
                    let lives = self.members.lives(record.session(), received);
                    Member { record, lives }
                });
                let view = View {
                    members: members.collect(),
                    record: record.value,
                    seen: Some(received),
                    trouble: None,
                };
                self.publish.send_replace(Arc::new(view));
                true
            }
            Err(error) => {
                self.publish.send_modify(|view| {
                    let view = Arc::make_mut(view);
                    view.trouble = Some(error.to_string());
                    // Nobody is found silent because the store is.
                });
                false
            }
        }
    }

    /// How long the store may take. Nothing here is worth more waiting: it is asked again at the next look.
    fn patience(&self) -> Duration {
        self.settings.look_every.max(Duration::from_millis(500))
    }

    fn tell_changes(&mut self) {
        while let Some(Change { node, state }) = self.members.poll_change() {
            let me = self.gate.node();
            match state {
                NodeState::Live => {
                    tracing::info!(target: "tenure", node = %node, seen_by = %me, "node_joined")
                }
                NodeState::Left => tracing::info!(target: "tenure", node = %node, seen_by = %me, "node_left"),
                NodeState::Expired => {
                    tracing::warn!(target: "tenure", node = %node, seen_by = %me, "node_expired");
                }
            }
        }
    }

    /// What the leader does for all. Each step looks again whether it still leads; what comes too late
    /// all the same does no harm, since the store compares.
    async fn clean_up(&mut self, term: Term) {
        let now = clock::now();
        for stamp in self.members.silent(now) {
            if self.gate.check().is_err() {
                return;
            }
            match in_time(self.patience(), self.store.retire(stamp)).await {
                Ok(told) if told.value => {
                    tracing::warn!(target: "tenure", session = %stamp.session, "retired a session that fell silent");
                }
                Ok(_) => {} // it has shown a sign of life, or another was quicker
                Err(error) => tracing::debug!(target: "tenure", %error, "a silent session was not retired"),
            }
        }
        self.declare(term, now).await;
        let due = self.tidied.is_none_or(|tidied| now.since(tidied) >= TIDY_EVERY);
        if due && in_time(self.patience(), self.store.purge(self.settings.forget_after)).await.is_ok() {
            self.tidied = Some(now);
        }
    }

    async fn declare(&mut self, term: Term, now: Instant) {
        let (Some(degraded), Some(session)) = (self.members.degraded(now), self.session) else { return };
        if self.declared == Some((term, degraded)) || self.gate.check() != Ok(term) {
            return;
        }
        let lease = Lease { session, election: self.gate.election().clone(), term };
        let (live, minimum) = (count(self.members.live(now)), count(self.members.minimum()));
        match in_time(self.patience(), self.store.declare(Declaration { lease, degraded, live, minimum }))
            .await
        {
            Ok(told) => {
                self.declared = Some((term, degraded));
                if told.value && degraded {
                    tracing::warn!(target: "tenure", live, minimum, "cluster_degraded");
                } else if told.value {
                    tracing::info!(target: "tenure", live, minimum, "cluster_recovered");
                }
            }
            Err(error) => tracing::debug!(target: "tenure", %error, "the cluster's state was not noted"),
        }
    }

    /// Waits for news, for somebody to fall silent, or for a while. `None` once the node has come to its
    /// end.
    async fn wait(&mut self) -> Option<()> {
        let now = clock::now();
        let regular = now + self.settings.look_every;
        let at = self.members.next_lapse(now).map_or(regular, |lapse| lapse.min(regular));
        let set = self.timer.set(Some(at));
        loop {
            tokio::select! {
                _ = self.timer.fired(), if set.is_ok() => return Some(()),
                // Where the system gives no timer.
                () = tokio::time::sleep(self.settings.look_every), if set.is_err() => return Some(()),
                hint = next(&mut self.hints) => match hint {
                    None => self.hints = None,
                    Some(hint) if hint.election().is_some_and(|about| about != self.gate.election()) => {}
                    Some(_) => return Some(()),
                },
                // It fails when nobody can be granted anything any more: the node has come to its end.
                Ok(()) = self.grants.changed() => return Some(()),
                held = self.held.changed() => match held {
                    None => return None,
                    Some(held) if held.session != self.session => return Some(()),
                    Some(_) => {}
                },
            }
        }
    }
}

async fn in_time<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| Err(StoreError::unavailable(format!("no answer within {patience:?}")));
    tokio::time::timeout(patience, asked).await.unwrap_or_else(late)
}

async fn next(hints: &mut Option<Hints>) -> Option<Hint> {
    match hints {
        Some(hints) => hints.next().await,
        None => std::future::pending().await,
    }
}

fn sighting(record: &NodeRecord) -> Sighting {
    Sighting { node: record.info.id.clone(), state: record.state, pulse: record.pulse }
}

fn count(nodes: usize) -> u32 {
    u32::try_from(nodes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cluster_times_silence_with_the_drift_of_its_node() {
        let store = Arc::new(tenure_memory::MemoryStore::new(tenure_store::Options::default()));
        let node = Node::builder("a").drift_thousandths(33).start(store).await.unwrap();
        assert!(format!("{:?}", node.members(1)).contains("drift: Drift(33)"));
        node.close().await;
    }
}
