//! A node that is asked over its API; when it gives no answer, the next one that it told of.

use std::time::{Duration, SystemTime};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenure::{
    EventKind, EventRecord, NodeId, NodeInfo, NodeRecord, NodeState, PartitionState, Term, Unhealthy,
};
use tenure_core::{Age, Pulse, SessionId, Stamp};
use tenure_http::Client;
use tenure_http::leader_only::Origin;

use super::sight::Sight;
use super::source::{Division, FIRST, Look, merged};
use crate::failure::Failure;

pub struct Remote {
    client: Client,
    node: Origin,
    others: Vec<Origin>,
}

/// Of what a node answers, what is shown. The names are those of the API.
#[derive(Deserialize)]
struct Status {
    election: String,
    term: u64,
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Leader {
    leader_id: String,
    term: u64,
    api_url: Option<String>,
    hostname: Option<String>,
    age_ms: u64,
    expires_in_ms: u64,
}

#[derive(Deserialize)]
struct Node {
    node_id: String,
    state: String,
    hostname: String,
    api_url: Option<String>,
    pid: u32,
    version: String,
    joined_at: String,
    renewed_at: String,
    /// A node of an older version says nothing of either.
    problem: Option<String>,
    unhealthy_since: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    id: u64,
    time: String,
    event: String,
    election: Option<String>,
    node: Option<String>,
    term: u64,
    data: serde_json::Value,
}

#[derive(Deserialize)]
struct Partition {
    state: String,
}

impl Remote {
    pub fn new(url: &str) -> Result<Self, Failure> {
        let node = url.parse().map_err(|error| {
            Failure::Usage(format!("`{url}` is no address of a node: {error}; such as http://127.0.0.1:8001"))
        })?;
        Ok(Self { client: Client::default(), node, others: Vec::new() })
    }

    pub async fn look(&mut self, last: u64) -> Result<Look, Failure> {
        let looked = self.look_at_this_one(last).await;
        if looked.is_err()
            && let Some(next) = self.others.pop()
        {
            let silent = std::mem::replace(&mut self.node, next);
            self.others.insert(0, silent);
        }
        looked
    }

    async fn look_at_this_one(&mut self, last: u64) -> Result<Look, Failure> {
        let status: Status = self.get("/cluster/status").await?;
        let (led, leader) = self.client.get(&self.node, "/cluster/leader").await.map_err(no_answer)?;
        let leader: Option<Leader> =
            if led.is_success() { Some(self.understood("/cluster/leader", &leader)?) } else { None };
        let path = match last {
            0 => format!("/cluster/events?limit={FIRST}"),
            last => format!("/cluster/events?since={last}&limit=1000"),
        };
        let all: Vec<Event> = self.get(&path).await?;
        let newest = all.last().map_or(last, |event| event.id);
        let mut events: Vec<EventRecord> = all.into_iter().filter_map(happened).collect();
        if last == 0 {
            let election = utf8_percent_encode(&status.election, NON_ALPHANUMERIC);
            let path = format!("/cluster/events?election={election}&limit={FIRST}");
            let own: Vec<Event> = self.get(&path).await?;
            events = merged(own.into_iter().filter_map(happened).collect(), &events);
        }
        let live = status.nodes.iter().filter(|node| node.state == "live");
        let known = live.filter_map(|node| node.api_url.as_deref()?.parse().ok());
        self.others = known.filter(|origin| *origin != self.node).collect();
        Ok(Look {
            sight: sight(status.election, status.term, leader),
            nodes: status.nodes.into_iter().filter_map(record).collect(),
            candidates: None,
            events,
            last: newest,
        })
    }

    pub async fn division(&self) -> Result<Division, Failure> {
        let partitions: Vec<Partition> = self.get("/cluster/partitions").await?;
        Ok(Division::of(partitions.iter().map(|partition| match partition.state.as_str() {
            "owned" => PartitionState::Owned,
            "revoking" => PartitionState::Revoking,
            _ => PartitionState::Vacant,
        })))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let (status, body) = self.client.get(&self.node, path).await.map_err(no_answer)?;
        if !status.is_success() {
            return Err(Failure::Store(format!("{} answers {path} with {status}", self.node)));
        }
        self.understood(path, &body)
    }

    fn understood<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(body).map_err(|error| {
            Failure::Store(format!("what {} answers to {path} is not understood: {error}", self.node))
        })
    }
}

fn no_answer(silent: tenure_http::NoAnswer) -> Failure {
    Failure::Store(silent.to_string())
}

fn sight(election: String, term: u64, leader: Option<Leader>) -> Sight {
    let Some(leader) = leader else {
        return Sight {
            election,
            leader_id: None,
            term,
            age_ms: None,
            expires_in_ms: None,
            hostname: None,
            api_url: None,
        };
    };
    Sight {
        election,
        leader_id: Some(leader.leader_id),
        term: leader.term,
        age_ms: Some(leader.age_ms),
        expires_in_ms: Some(leader.expires_in_ms),
        hostname: leader.hostname,
        api_url: leader.api_url,
    }
}

/// A node as a store would tell of it; `None` of one that this version cannot name.
fn record(node: Node) -> Option<NodeRecord> {
    let info = NodeInfo {
        address: node.api_url,
        pid: node.pid,
        version: node.version,
        ..NodeInfo::new(NodeId::new(node.node_id).ok()?, node.hostname)
    };
    let ttl = Duration::from_secs(1);
    let age = if node.state == "silent" { ttl } else { Duration::ZERO };
    let state = match node.state.as_str() {
        "live" | "silent" => NodeState::Live,
        "left" => NodeState::Left,
        _ => NodeState::Expired,
    };
    // Of the session only whether it is silent is shown.
    let stamp = Stamp { session: SessionId::from_u128(0), sequence: 0 };
    let pulse = Pulse { stamp, ttl, age: Age::Exact(age) };
    let unhealthy = node.problem.and_then(|problem| {
        let since = moment(&node.unhealthy_since?)?;
        Some(Unhealthy { problem: problem.into(), since })
    });
    Some(NodeRecord {
        info,
        state,
        pulse,
        opened_at: moment(&node.joined_at)?,
        renewed_at: moment(&node.renewed_at)?,
        unhealthy,
    })
}

/// An event; `None` of a kind that a newer node knows, and this version does not.
fn happened(event: Event) -> Option<EventRecord> {
    Some(EventRecord {
        id: event.id,
        sequence: 0,
        time: moment(&event.time)?,
        kind: EventKind::from_name(&event.event)?,
        election: event.election.and_then(|name| name.parse().ok()),
        node: event.node.and_then(|name| name.parse().ok()),
        term: Term::new(event.term),
        data: event.data.to_string(),
    })
}

fn moment(time: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(time).ok()
}
