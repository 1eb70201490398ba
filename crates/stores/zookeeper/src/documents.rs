//! What the znodes hold: JSON, so that a person with `zkCli` can read it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenure_core::{Age, ElectionName, NodeId, Petition, Pulse, SessionId, Stamp, Term};
use tenure_store::{EventKind, EventRecord, Labels, NodeInfo, NodeState, StoreError};

use crate::error::foreign;

pub(crate) fn write(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).expect("these documents have only text and numbers in them")
}

pub(crate) fn read<T: DeserializeOwned>(path: &str, data: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(data).map_err(|error| foreign(path, &error.to_string()))
}

/// A session id in a document.
pub(crate) fn session(path: &str, text: &str) -> Result<SessionId, StoreError> {
    let number = u128::from_str_radix(text, 16).map_err(|error| foreign(path, &error.to_string()))?;
    Ok(SessionId::from_u128(number))
}

pub(crate) fn node(path: &str, text: &str) -> Result<NodeId, StoreError> {
    NodeId::new(text).map_err(|error| foreign(path, &error.to_string()))
}

/// `pulses/SESSION`: the last sign of life. Written by each renewal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PulseDocument {
    pub sequence: u64,
    /// What the servers granted.
    pub ttl_ms: u64,
}

impl PulseDocument {
    pub(crate) fn new(sequence: u64, granted: Duration) -> Self {
        Self { sequence, ttl_ms: u64::try_from(granted.as_millis()).unwrap_or(u64::MAX) }
    }

    pub(crate) fn pulse(&self, session: SessionId) -> Pulse {
        let stamp = Stamp { session, sequence: self.sequence };
        Pulse { stamp, ttl: Duration::from_millis(self.ttl_ms), age: Age::Unknown }
    }
}

/// `nodes/NODE`: what a node told about itself, and its newest session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NodeDocument {
    pub node: String,
    pub session: String,
    pub hostname: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub address: Option<String>,
    pub pid: u32,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub state: State,
    pub opened_us: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unhealthy: Option<UnhealthyDocument>,
    /// The number of the last report of its health.
    #[serde(default)]
    pub health_report: u64,
}

/// That a node's health probe fails.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UnhealthyDocument {
    pub problem: String,
    pub since_us: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// As long as the session's znode is there.
    Live,
    Left,
    Expired,
}

impl From<State> for NodeState {
    fn from(state: State) -> Self {
        match state {
            State::Live => Self::Live,
            State::Left => Self::Left,
            State::Expired => Self::Expired,
        }
    }
}

impl NodeDocument {
    pub(crate) fn new(info: &NodeInfo, session: SessionId) -> Self {
        Self {
            node: info.id.to_string(),
            session: session.to_string(),
            hostname: info.hostname.clone(),
            address: info.address.clone(),
            pid: info.pid,
            version: info.version.clone(),
            labels: info.labels.map().clone(),
            state: State::Live,
            opened_us: now_us(),
            unhealthy: None,
            health_report: 0,
        }
    }

    pub(crate) fn info(&self, path: &str) -> Result<NodeInfo, StoreError> {
        Ok(NodeInfo {
            id: node(path, &self.node)?,
            hostname: self.hostname.clone(),
            address: self.address.clone(),
            pid: self.pid,
            version: self.version.clone(),
            labels: Labels::of(self.labels.clone()).map_err(|error| foreign(path, &error.to_string()))?,
        })
    }
}

/// The wall clock of this machine: for people to read.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

pub(crate) fn time(us: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(us)
}

/// In a candidate's znode: who stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CandidateDocument {
    pub node: String,
}

/// `elections/ELECTION`: the record. Every transition is one compare-and-set on it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ElectionDocument {
    /// The highest term granted.
    pub granted: u64,
    /// The highest term reported by a claim, or consumed by an end.
    pub floor: u64,
    /// The term under which the election was last ended.
    pub ended: u64,
    /// Somebody has stood since the election began, or since it was last ended.
    pub stood: bool,
    /// Who was granted the lease last and has not given it up. It holds it as long as its session's
    /// candidate is in line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<HolderDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub petition: Option<PetitionDocument>,
    /// Its leader has said that the cluster is below its minimum.
    pub degraded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_leader: Option<String>,
    /// The sequence of the newest event.
    pub events: u64,
    /// The sequence of the oldest event that is kept.
    pub oldest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HolderDocument {
    pub session: String,
    pub node: String,
    pub term: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PetitionDocument {
    pub term: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<String>,
}

impl ElectionDocument {
    /// What [`tenure_core::Record::term`] shows.
    pub(crate) fn term(&self) -> Term {
        Term::new(self.granted.max(self.floor))
    }

    pub(crate) fn petition(&self, path: &str) -> Result<Option<Petition>, StoreError> {
        let Some(petition) = &self.petition else { return Ok(None) };
        let to = petition.to.as_ref().map(|to| node(path, to)).transpose()?;
        Ok(Some(Petition { term: Term::new(petition.term), to }))
    }
}

/// An event, in a znode of its own. Its number in the whole store is made of the transaction's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EventDocument {
    pub sequence: u64,
    /// Counts the events of one transaction.
    pub index: u8,
    pub time_us: u64,
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<String>,
    pub term: u64,
    pub data: Value,
}

/// Room for the events of one transaction.
const INDEX_BITS: u32 = 4;

impl EventDocument {
    pub(crate) fn new(kind: EventKind, node: Option<&str>, term: u64, data: Value) -> Self {
        Self {
            sequence: 0,
            index: 0,
            time_us: now_us(),
            kind: kind.name().to_owned(),
            node: node.map(str::to_owned),
            term,
            data,
        }
    }

    pub(crate) fn record(
        &self,
        path: &str,
        czxid: i64,
        election: Option<&ElectionName>,
    ) -> Result<EventRecord, StoreError> {
        let kind = EventKind::from_name(&self.kind);
        Ok(EventRecord {
            id: event_id(czxid, self.index),
            sequence: self.sequence,
            time: time(self.time_us),
            kind: kind.ok_or_else(|| foreign(path, &format!("`{}` is no event", self.kind)))?,
            election: election.cloned(),
            node: self.node.as_ref().map(|text| node(path, text)).transpose()?,
            term: Term::new(self.term),
            data: self.data.to_string(),
        })
    }
}

/// The number of an event in the whole store: transactions are numbered by the servers, in order.
pub(crate) fn event_id(zxid: i64, index: u8) -> u64 {
    (u64::try_from(zxid).unwrap_or(0) << INDEX_BITS) | u64::from(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_whatever_is_in_a_znode_it_is_understood_or_refused() {
        let samples: [&[u8]; 5] = [
            br#"{"sequence":7,"ttl_ms":10000}"#,
            br#"{"node":"a","session":"0f","hostname":"h","pid":1,"labels":{"zone":"x"},"state":"live","opened_us":1,
                "unhealthy":{"problem":"no disk","since_us":1},"health_report":2}"#,
            br#"{"granted":3,"floor":4,"holder":{"session":"0f","node":"a","term":3},"petition":{"term":3,"to":"b"}}"#,
            br#"{"sequence":1,"index":0,"time_us":1,"kind":"leader_elected","node":"a","term":1,"data":{}}"#,
            br#"{"node":"a"}"#,
        ];
        tenure_testkit::fuzz::fuzz(&samples, |bytes| {
            let _ = read::<PulseDocument>("/", bytes).map(|found| found.pulse(SessionId::from_u128(1)));
            let _ =
                read::<NodeDocument>("/", bytes).map(|found| (found.info("/"), session("/", &found.session)));
            let _ = read::<NodeDocument>("/", bytes).map(|found| time(found.opened_us));
            let _ = read::<ElectionDocument>("/", bytes).map(|found| (found.term(), found.petition("/")));
            let _ = read::<CandidateDocument>("/", bytes).map(|found| node("/", &found.node));
            let _ = read::<EventDocument>("/", bytes).map(|found| time(found.time_us));
        });
    }
}
