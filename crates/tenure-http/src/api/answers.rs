//! What is answered, field by field. The command's `--json` has the same names.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tenure::{ChildStatus, EventRecord, Member, NodeState, TermEnd};
use tenure_store::clock;
use utoipa::ToSchema;

use crate::worker::Row;

/// What this node is in its election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Another leads.
    Follower,
    /// Nobody is known to lead, and this node stands.
    Candidate,
    /// This node leads.
    Leader,
    /// This node is on its way out, or has no session.
    Stopped,
}

/// How it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// Somebody leads, and enough nodes live.
    Healthy,
    /// This node is well, but nobody leads, or too few nodes live.
    Degraded,
    /// This node has no session, or has not heard of the store for a whole ttl.
    Unhealthy,
}

/// Everything that a node knows of its cluster.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// This node.
    pub node_id: String,
    /// The election that makes the leader.
    pub election: String,
    /// What it is.
    pub state: Role,
    /// Whether this node leads at this instant.
    pub is_leader: bool,
    /// Who leads.
    pub leader_id: Option<String>,
    /// The leader's term; without a leader, the highest that is known.
    pub term: u64,
    /// How many nodes live.
    pub cluster_size: usize,
    /// How many must.
    pub minimum_size: usize,
    /// Whether somebody leads and enough nodes live, by knowledge that is no older than a ttl.
    pub cluster_ready: bool,
    /// How long ago the store last said so; null: it never has.
    pub known_ms_ago: Option<u64>,
    /// Every node that is remembered.
    pub nodes: Vec<Node>,
    /// The leader's lease.
    pub lease: Option<Lease>,
    /// The children of this node's supervised work, in the order in which they are started.
    pub children: Vec<Child>,
}

/// A child of supervised work.
#[derive(Debug, Serialize, ToSchema)]
pub struct Child {
    /// Its name.
    pub name: String,
    /// `idle`, `starting`, `running`, `backing_off`, `stopping` or `failed`.
    pub health: &'static str,
    /// How often it was restarted here.
    pub restarts: u64,
    /// How it last ended when it should not have.
    pub last_error: Option<String>,
}

impl Child {
    pub(super) fn of(child: ChildStatus) -> Self {
        let ChildStatus { name, health, restarts, last_error } = child;
        Self { name: name.to_string(), health: health.name(), restarts, last_error }
    }
}

/// A leader's lease. The moments are for people to read: nothing is decided by them.
#[derive(Debug, Serialize, ToSchema)]
pub struct Lease {
    /// Who holds it.
    pub leader_id: String,
    /// Under which term.
    pub term: u64,
    /// When the term began; null if the history does not reach back so far.
    pub acquired_at: Option<String>,
    /// When its holder last showed a sign of life, as far as this node knows.
    pub renewed_at: String,
    /// When it lapses without another.
    pub expires_at: String,
    /// The leader's machine.
    pub hostname: Option<String>,
    /// Where the leader's API is reached.
    pub api_url: Option<String>,
}

/// Who leads.
#[derive(Debug, Serialize, ToSchema)]
pub struct Leader {
    /// The node.
    pub leader_id: String,
    /// The term that it was granted.
    pub term: u64,
    /// Where its API is reached.
    pub api_url: Option<String>,
    /// Its machine.
    pub hostname: Option<String>,
    /// How long ago it showed a sign of life, at most.
    pub age_ms: u64,
    /// For how long it leads without another one, at least.
    pub expires_in_ms: u64,
}

/// Whether the node and its cluster are well.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// How it goes.
    pub status: Condition,
    /// `enabled`: a node without a cluster does not answer.
    pub clustering: &'static str,
    /// This node.
    pub node_id: String,
    /// What it is.
    pub state: Role,
    /// Whether it leads at this instant.
    pub is_leader: bool,
    /// Who leads.
    pub leader_id: Option<String>,
    /// How many nodes live.
    pub cluster_size: usize,
    /// Whether somebody leads and enough nodes live.
    pub cluster_ready: bool,
    /// What is wrong with the store, if this node has not heard of it.
    pub store_error: Option<String>,
    /// When this was said.
    pub timestamp: String,
    /// Of Tenure.
    pub version: &'static str,
}

/// A node of the cluster.
#[derive(Debug, Serialize, ToSchema)]
pub struct Node {
    /// Its id.
    pub node_id: String,
    /// `live`, `silent` (live, but not heard of for its whole ttl), `left` or `expired`.
    pub state: &'static str,
    /// Its machine.
    pub hostname: String,
    /// Where its API is reached.
    pub api_url: Option<String>,
    /// Its process id there.
    pub pid: u32,
    /// Its session.
    pub session: String,
    /// Of Tenure.
    pub version: String,
    /// What its operator says of it.
    pub labels: BTreeMap<String, String>,
    /// When it registered.
    pub joined_at: String,
    /// When it last showed a sign of life.
    pub renewed_at: String,
    /// What its health probe has found; null: it passes, or there is none. While it fails, the node leads nothing and
    /// is no candidate.
    pub problem: Option<String>,
    /// Since when the probe fails.
    pub unhealthy_since: Option<String>,
}

impl Node {
    pub(super) fn of(member: &Member) -> Self {
        let record = &member.record;
        let unhealthy = record.unhealthy.as_ref();
        Self {
            node_id: record.info.id.to_string(),
            state: match record.state {
                NodeState::Live if member.lives => "live",
                NodeState::Live => "silent",
                NodeState::Left => "left",
                NodeState::Expired => "expired",
            },
            hostname: record.info.hostname.clone(),
            api_url: record.info.address.clone(),
            pid: record.info.pid,
            session: record.session().to_string(),
            version: record.info.version.clone(),
            labels: record.info.labels.map().clone(),
            joined_at: timestamp(record.opened_at),
            renewed_at: timestamp(record.renewed_at),
            problem: unhealthy.map(|unhealthy| unhealthy.problem.to_string()),
            unhealthy_since: unhealthy.map(|unhealthy| timestamp(unhealthy.since)),
        }
    }
}

/// An election of the store.
#[derive(Debug, Serialize, ToSchema)]
pub struct Election {
    /// Its name.
    pub election: String,
    /// Who leads it.
    pub leader_id: Option<String>,
    /// The leader's term; without one, the highest that was granted.
    pub term: u64,
    /// How long ago the leader showed a sign of life, where the store can tell.
    pub age_ms: Option<u64>,
    /// For how long it leads without another one.
    pub expires_in_ms: Option<u64>,
    /// The leader's machine.
    pub hostname: Option<String>,
    /// Where the leader's API is reached.
    pub api_url: Option<String>,
}

/// A partition, and who owns it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Partition {
    /// Of which task list.
    pub task_list: String,
    /// Which.
    pub partition: u32,
    /// `vacant`, `owned` or `revoking`.
    pub state: &'static str,
    /// Who owns it, if anybody.
    pub node_id: Option<String>,
    /// When it last changed hands or was asked for, as the ledger counts.
    pub term: u64,
}

/// A partition that this node owns, for the program that works on it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Mine {
    /// Of which task list.
    pub task_list: String,
    /// Which.
    pub partition: u32,
    /// The partition's term: hand it to whatever you write to.
    pub term: u64,
    /// `assigned`, or `revoked`: the program shall stop, and say so by `/cluster/partitions/release`.
    pub state: &'static str,
    /// For how long the program may work without hearing of a renewal.
    pub expires_in_ms: u64,
    /// The same as a moment, on the boot clock of the node's machine (`CLOCK_BOOTTIME`): it is true however late it
    /// is read.
    pub deadline_boot_ms: u64,
}

impl Mine {
    pub(super) fn of(row: &Row) -> Self {
        Self {
            task_list: row.list.to_string(),
            partition: row.number,
            term: row.term.number(),
            state: if row.revoked { "revoked" } else { "assigned" },
            expires_in_ms: millis(row.until.since(clock::now())),
            deadline_boot_ms: row.until.as_nanos() / 1_000_000,
        }
    }
}

/// A line of history.
#[derive(Debug, Serialize, ToSchema)]
pub struct Event {
    /// Rises over the whole store.
    pub id: u64,
    /// When.
    pub time: String,
    /// What happened.
    pub event: &'static str,
    /// In which election; null for events of nodes.
    pub election: Option<String>,
    /// To which node.
    pub node: Option<String>,
    /// Under which term; 0 for events of nodes.
    pub term: u64,
    /// More about it.
    #[schema(value_type = Object)]
    pub data: serde_json::Value,
    /// When its leader ceased to lead. Only of an event that ends a term.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub led_until: Option<LedUntil>,
}

/// When a leader ceased to lead. The two differ only if it fell silent.
#[derive(Debug, Serialize, ToSchema)]
pub struct LedUntil {
    /// Until then it led for certain: its last renewal.
    pub earliest: String,
    /// It led no longer than that: the end of its lease.
    pub latest: String,
}

impl From<TermEnd> for LedUntil {
    fn from(end: TermEnd) -> Self {
        Self { earliest: timestamp(end.earliest), latest: timestamp(end.latest) }
    }
}

impl Event {
    pub(crate) fn of(event: &EventRecord) -> Self {
        Self {
            id: event.id,
            time: timestamp(event.time),
            event: event.kind.name(),
            election: event.election.as_ref().map(ToString::to_string),
            node: event.node.as_ref().map(ToString::to_string),
            term: event.term.number(),
            data: serde_json::from_str(&event.data).unwrap_or_default(),
            led_until: TermEnd::of(event).map(LedUntil::from),
        }
    }
}

/// What a leader was asked.
#[derive(Debug, Serialize, ToSchema)]
pub struct Asked {
    /// Who was asked.
    pub leader_id: String,
    /// Which term it shall give up.
    pub term: u64,
    /// For whom; null: for the first in line.
    pub to: Option<String>,
}

/// Yes.
#[derive(Debug, Serialize, ToSchema)]
pub struct Yes {
    /// `ok`.
    pub status: &'static str,
}

pub(super) const YES: Yes = Yes { status: "ok" };

/// UTC, RFC 3339.
pub(super) fn timestamp(moment: SystemTime) -> String {
    humantime::format_rfc3339_micros(moment).to_string()
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
