//! What is counted, under the names that Prometheus reads. Every node has a registry of its own.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use tenure::{ChildHealth, ChildStatus, ElectionName, EventKind, EventRecord, NodeEvent, Term, TermEnd};
use tenure_core::Instant;
use tenure_store::clock;

/// The metrics of one node. Clones count together.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    is_leader: Family<Election, Gauge>,
    term: Family<Election, Gauge>,
    leader_changes: Family<Election, Counter>,
    leadership: Histogram,
    elections: Family<Outcome, Counter>,
    renewals: Family<Outcome, Counter>,
    renewal: Histogram,
    lease_remaining: Family<Election, Gauge<f64, AtomicU64>>,
    failover: Histogram,
    nodes: Family<State, Gauge>,
    node_healthy: Gauge,
    heartbeats: Family<Outcome, Counter>,
    store_request: Family<Operation, Histogram>,
    child_running: Family<Child, Gauge>,
    child_restarts: Family<Child, Counter>,
    partitions: Family<State, Gauge>,
    partition_moves: Counter,
    rebalance: Histogram,
    /// Since when it leads which, and when its leader was last lost.
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
struct Times {
    led: Vec<Led>,
    /// When the election of this API was last left without a leader, by the history.
    vacant: Option<TermEnd>,
}

/// What this node leads, under which term, since when.
type Led = (ElectionName, Term, Instant);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Election {
    election: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

/// A partition that this node works on.
const ASSIGNED: &str = "assigned";
/// One that it works on, and is giving up.
const REVOKING: &str = "revoking";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Child {
    child: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

/// From a millisecond to half a minute.
fn requests() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// From ten milliseconds to five minutes.
fn failovers() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 15))
}

/// From a second to eleven days.
fn leaderships() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 11))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut inner = Inner {
            registry: Registry::with_prefix("tenure"),
            is_leader: Family::default(),
            term: Family::default(),
            leader_changes: Family::default(),
            leadership: leaderships(),
            elections: Family::default(),
            renewals: Family::default(),
            renewal: requests(),
            lease_remaining: Family::default(),
            failover: failovers(),
            nodes: Family::default(),
            node_healthy: Gauge::default(),
            heartbeats: Family::default(),
            store_request: Family::new_with_constructor(requests),
            child_running: Family::default(),
            child_restarts: Family::default(),
            partitions: Family::default(),
            partition_moves: Counter::default(),
            rebalance: failovers(),
            times: Mutex::default(),
        };
        inner.register();
        Self(Arc::new(inner))
    }
}

impl Inner {
    fn register(&mut self) {
        let r = &mut self.registry;
        r.register("is_leader", "Whether this node leads at this instant", self.is_leader.clone());
        r.register("term", "The highest term that this node knows of", self.term.clone());
        let name = "leader_changes";
        r.register(name, "How often another node came to lead", self.leader_changes.clone());
        let seconds = || Unit::Seconds;
        r.register_with_unit("leadership", "How long this node led", seconds(), self.leadership.clone());
        let help = "How often this node was elected, or another while it stood";
        r.register("elections", help, self.elections.clone());
        r.register("renewals", "Renewals while this node led something", self.renewals.clone());
        r.register_with_unit("renewal", "How long renewals took", seconds(), self.renewal.clone());
        let help = "How long this node leads without another renewal";
        r.register_with_unit("lease_remaining", help, seconds(), self.lease_remaining.clone());
        let help = "How long nobody led, until the next grant: from a resignation, from the end of the lease if the \
                    same process comes back after an outage, or else from the last renewal";
        r.register_with_unit("failover", help, seconds(), self.failover.clone());
        r.register("nodes", "How many nodes there are", self.nodes.clone());
        self.node_healthy.set(1);
        let help = "Whether the health probe of this node passes; 1 if it has none";
        r.register("node_healthy", help, self.node_healthy.clone());
        r.register("heartbeats", "Signs of life of this node", self.heartbeats.clone());
        let help = "How long the store took";
        r.register_with_unit("store_request", help, seconds(), self.store_request.clone());
        let help = "Whether a child of supervised work runs here";
        r.register("child_running", help, self.child_running.clone());
        let help = "How often a child of supervised work was restarted here";
        r.register("child_restarts", help, self.child_restarts.clone());
        for state in [ASSIGNED, REVOKING] {
            self.partitions.get_or_create(&State { state }).set(0);
        }
        let help = "How many partitions this node works on, and how many of them it is giving up";
        r.register("partitions", help, self.partitions.clone());
        let help = "How often a partition was given to a node, by the history";
        r.register("partition_moves", help, self.partition_moves.clone());
        let help = "How long it took, as a coordinator, from the first publication of a plan until it was carried out";
        r.register_with_unit("rebalance", help, seconds(), self.rebalance.clone());
        // What has not happened is shown as zero, so that its first time is a rise.
        for outcome in ["ok", "failed"] {
            let _ = self.renewals.get_or_create(&Outcome { outcome });
            let _ = self.heartbeats.get_or_create(&Outcome { outcome });
        }
        for outcome in ["won", "lost"] {
            let _ = self.elections.get_or_create(&Outcome { outcome });
        }
    }
}

impl Inner {
    fn works_on(&self, state: &'static str, change: i64) {
        self.partitions.get_or_create(&State { state }).inc_by(change);
    }
}

impl Metrics {
    /// What the library has to tell: hand it to `NodeBuilder::observer`.
    pub fn observer(&self) -> impl Fn(&NodeEvent) + Send + Sync + 'static {
        let metrics = self.clone();
        move |event| metrics.count(event)
    }

    fn count(&self, event: &NodeEvent) {
        let inner = &*self.0;
        match event {
            NodeEvent::StoreAsked { verb, took, answered } => self.asked(verb, *took, *answered),
            NodeEvent::LeaderElected { election, term } => {
                inner.elections.get_or_create(&Outcome { outcome: "won" }).inc();
                self.times().led.push((election.clone(), *term, clock::now()));
            }
            NodeEvent::LeaderLost { election, term, .. }
            | NodeEvent::LeaderResigned { election, term, .. } => {
                let mut times = self.times();
                let ours = |led: &Led| led.0 == *election && led.1 == *term;
                if let Some(index) = times.led.iter().position(ours) {
                    let (.., since) = times.led.swap_remove(index);
                    inner.leadership.observe(clock::now().since(since).as_secs_f64());
                }
            }
            NodeEvent::NodeUnhealthy { .. } => {
                inner.node_healthy.set(0);
            }
            NodeEvent::NodeHealthy => {
                inner.node_healthy.set(1);
            }
            NodeEvent::PlanCarriedOut { took, .. } => inner.rebalance.observe(took.as_secs_f64()),
            NodeEvent::PartitionAssigned { .. } => inner.works_on(ASSIGNED, 1),
            NodeEvent::PartitionRevoked { .. } => {
                inner.works_on(ASSIGNED, -1);
                inner.works_on(REVOKING, 1);
            }
            NodeEvent::PartitionReleased { revoked, .. } => {
                inner.works_on(if *revoked { REVOKING } else { ASSIGNED }, -1);
            }
            NodeEvent::LeaderChanged { election, new: Some(_), .. } => {
                let named = Election { election: election.to_string() };
                inner.leader_changes.get_or_create(&named).inc();
                if !self.times().led.iter().any(|led| led.0 == *election) {
                    inner.elections.get_or_create(&Outcome { outcome: "lost" }).inc();
                }
            }
            _ => {}
        }
    }

    fn asked(&self, verb: &'static str, took: Duration, answered: bool) {
        let inner = &*self.0;
        let took = took.as_secs_f64();
        inner.store_request.get_or_create(&Operation { operation: verb }).observe(took);
        let outcome = Outcome { outcome: if answered { "ok" } else { "failed" } };
        if matches!(verb, "open" | "renew") {
            inner.heartbeats.get_or_create(&outcome).inc();
        }
        if verb == "renew" {
            inner.renewal.observe(took);
            if !self.times().led.is_empty() {
                inner.renewals.get_or_create(&outcome).inc();
            }
        }
    }

    /// An event of the election whose leader this API speaks of: from it follows how long nobody led.
    pub(crate) fn event(&self, event: &EventRecord) {
        match event.kind {
            EventKind::LeaderResigned | EventKind::LeaderLost => self.times().vacant = TermEnd::of(event),
            EventKind::PlanPublished => {
                let data: serde_json::Value = serde_json::from_str(&event.data).unwrap_or_default();
                self.0.partition_moves.inc_by(data["assigned"].as_u64().unwrap_or(0));
            }
            EventKind::LeaderElected => {
                if let Some(end) = self.times().vacant.take() {
                    self.0.failover.observe(end.until(event.time).at_most.as_secs_f64());
                }
            }
            _ => {}
        }
    }

    /// What is so at this instant.
    pub(crate) fn leads(&self, election: &str, leads: bool, term: Term, remaining: Duration) {
        let labels = Election { election: election.to_owned() };
        self.0.is_leader.get_or_create(&labels).set(i64::from(leads));
        self.0.term.get_or_create(&labels).set(i64::try_from(term.number()).unwrap_or(i64::MAX));
        self.0.lease_remaining.get_or_create(&labels).set(remaining.as_secs_f64());
    }

    pub(crate) fn nodes(&self, state: &'static str, count: usize) {
        self.0.nodes.get_or_create(&State { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// How a child of supervised work is doing.
    pub(crate) fn child(&self, child: &ChildStatus) {
        let labels = Child { child: child.name.to_string() };
        let running = child.health == ChildHealth::Running;
        self.0.child_running.get_or_create(&labels).set(i64::from(running));
        self.0.child_restarts.get_or_create(&labels).inner().store(child.restarts, Ordering::Relaxed);
    }

    /// All of it, in OpenMetrics.
    pub(crate) fn open_metrics(&self) -> String {
        let mut text = String::with_capacity(8192);
        // Text can always be added to text.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.0.registry);
        text
    }

    /// All of it, in the older format of Prometheus: there a counter is called `…_total` in its
    /// description too, and units and the end are not told.
    pub(crate) fn text(&self) -> String {
        let open = self.open_metrics();
        let counters: BTreeSet<&str> =
            open.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
        let mut text = String::with_capacity(open.len());
        for line in open.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF") {
            match line.strip_prefix("# ").and_then(|rest| {
                let (word, rest) = rest.split_once(' ')?;
                let (name, rest) = rest.split_once(' ')?;
                counters.contains(name).then_some((word, name, rest))
            }) {
                Some((word, name, rest)) => text.push_str(&format!("# {word} {name}_total {rest}")),
                None => text.push_str(line),
            }
            text.push('\n');
        }
        text
    }

    fn times(&self) -> std::sync::MutexGuard<'_, Times> {
        // What is guarded is whole after every statement.
        self.0.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn an_outage_is_measured_from_the_end_of_the_lease() {
        let metrics = Metrics::default();
        let event = |ms: u64, kind, term, data: &str| EventRecord {
            id: ms,
            sequence: ms,
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(ms),
            kind,
            election: ElectionName::new("coordinator").ok(),
            node: None,
            term: Term::new(term),
            data: data.to_owned(),
        };
        let outage = r#"{"reason":"lapsed","silent_ms":17776,"ttl_ms":4000,"reopened":true}"#;
        metrics.event(&event(100_000, EventKind::LeaderLost, 1, outage));
        metrics.event(&event(100_024, EventKind::LeaderElected, 2, "{}"));
        let text = metrics.text();
        assert!(text.contains("tenure_failover_seconds_sum 13.8\n"), "{text}");
        assert!(text.contains("tenure_failover_seconds_count 1\n"), "{text}");
    }
}
