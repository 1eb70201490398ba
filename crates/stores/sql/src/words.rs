//! What the functions in the database answer, and what it means.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use tenure_core::{
    Age, ElectionName, Holder, NameError, NodeId, Petition, Pulse, Record, SessionId, Stamp, Standing,
    StoreIdentity, Term,
};
use tenure_store::{
    EventKind, EventRecord, Labels, NodeInfo, NodeRecord, NodeState, Problem, StoreError, Told, Unhealthy,
};

/// An answer of any verb: its own words, or that the session is lost.
#[derive(Deserialize)]
pub(crate) struct Answer<T> {
    #[serde(default, deserialize_with = "truth")]
    pub lost: bool,
    pub store: Option<String>,
    #[serde(flatten)]
    pub value: Option<T>,
}

impl<T> Answer<T> {
    /// The words with the store's identity, unless the session is lost.
    pub(crate) fn told(self) -> Result<Told<T>, StoreError> {
        match (self.lost, self.store, self.value) {
            (true, ..) => Err(StoreError::SessionLost),
            (false, Some(store), Some(value)) => {
                Ok(Told { store: StoreIdentity::of(&[store.as_bytes()]), value })
            }
            _ => Err(foreign("half an answer")),
        }
    }
}

/// What a function has answered.
pub(crate) fn understood<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| {
        StoreError::misconfigured(format!("the database answers in other words than ours: {error}"))
    })
}

/// Some databases have no yes and no, and say 1 and 0.
pub(crate) fn truth<'de, D: Deserializer<'de>>(said: D) -> Result<bool, D::Error> {
    let said = serde_json::Value::deserialize(said)?;
    Ok(said.as_bool().unwrap_or_else(|| said.as_i64() == Some(1)))
}

pub(crate) fn foreign(what: &str) -> StoreError {
    StoreError::misconfigured(format!("Tenure's tables hold what Tenure did not write: {what}"))
}

fn term(number: i64) -> Term {
    Term::new(u64::try_from(number).unwrap_or(0))
}

pub(crate) fn named<T: TryFrom<String, Error = NameError>>(name: String) -> Result<T, StoreError> {
    T::try_from(name).map_err(|error| foreign(&error.to_string()))
}

#[derive(Deserialize)]
pub(crate) struct PulseWords {
    session: String,
    sequence: u64,
    ttl_ms: u64,
    age_us: i64,
    clock_us: u64,
}

impl PulseWords {
    pub(crate) fn meant(self) -> Result<Pulse, StoreError> {
        let session: SessionId = self.session.parse().map_err(|_| foreign("a session without a number"))?;
        // A clock that was set back shows a renewal from the future: that is as fresh as can be.
        let age = Duration::from_micros(u64::try_from(self.age_us).unwrap_or(0));
        Ok(Pulse {
            stamp: Stamp { session, sequence: self.sequence },
            ttl: Duration::from_millis(self.ttl_ms),
            age: Age::Told { age, clock: Duration::from_micros(self.clock_us) },
        })
    }
}

#[derive(Deserialize)]
struct HolderWords {
    node: String,
    term: i64,
    pulse: PulseWords,
}

#[derive(Deserialize)]
pub(crate) struct RecordWords {
    term: i64,
    ended: i64,
    asked: i64,
    #[serde(default)]
    asked_for: Option<String>,
    #[serde(default)]
    holder: Option<HolderWords>,
}

impl RecordWords {
    pub(crate) fn meant(self) -> Result<Record, StoreError> {
        let holder = self.holder.map(|holder| {
            let (node, pulse) = (named(holder.node)?, holder.pulse.meant()?);
            Ok::<_, StoreError>(Holder { node, term: term(holder.term), pulse })
        });
        let asked = term(self.asked);
        let to = self.asked_for.map(named).transpose()?;
        Ok(Record {
            term: term(self.term),
            holder: holder.transpose()?,
            ended: term(self.ended),
            petition: (asked > Term::NONE).then_some(Petition { term: asked, to }),
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct OpenWords {
    pub ttl_ms: Option<u64>,
    pub occupant: Option<PulseWords>,
}

#[derive(Deserialize)]
pub(crate) struct RenewWords {
    pub previous: u64,
    pub notices: u64,
    pub grants: u64,
    pub waits_for: Vec<ElectionWords>,
}

#[derive(Deserialize)]
pub(crate) struct ClaimWords {
    granted: Option<u64>,
    seen: Option<RecordWords>,
}

impl ClaimWords {
    pub(crate) fn meant(self) -> Result<Standing, StoreError> {
        match (self.granted, self.seen) {
            (Some(term), _) => Ok(Standing::Leading { term: Term::new(term) }),
            (None, Some(seen)) => Ok(Standing::Waiting { seen: seen.meant()? }),
            (None, None) => Err(foreign("half an answer")),
        }
    }
}

/// Nothing but that it was done.
#[derive(Deserialize)]
pub(crate) struct Done {}

/// Whether it was done, or there was nothing to do.
#[derive(Deserialize)]
pub(crate) struct Whether {
    #[serde(deserialize_with = "truth")]
    pub done: bool,
}

#[derive(Deserialize)]
pub(crate) struct PurgeWords {
    pub gone: u64,
}

#[derive(Deserialize)]
pub(crate) struct SeenWords {
    pub seen: Option<RecordWords>,
}

#[derive(Deserialize)]
pub(crate) struct DeletionWords {
    pub deletion: String,
}

#[derive(Deserialize)]
pub(crate) struct PetitionWords {
    pub petition: String,
    pub leader: Option<String>,
    pub term: Option<i64>,
}

impl PetitionWords {
    pub(crate) fn noted(self) -> Result<(NodeId, Term), StoreError> {
        let leader = self.leader.ok_or_else(|| foreign("a leader without a name"))?;
        Ok((named(leader)?, term(self.term.unwrap_or(0))))
    }
}

#[derive(Deserialize)]
pub(crate) struct CandidateWords {
    node: String,
    priority: i32,
}

#[derive(Deserialize)]
pub(crate) struct ElectionWords {
    election: String,
    record: RecordWords,
}

#[derive(Deserialize)]
pub(crate) struct NodeWords {
    node: String,
    hostname: String,
    address: Option<String>,
    pid: u32,
    version: String,
    labels: BTreeMap<String, String>,
    state: String,
    pulse: PulseWords,
    opened_us: u64,
    renewed_us: u64,
    problem: Option<String>,
    unhealthy_us: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct EventWords {
    id: u64,
    sequence: u64,
    time_us: u64,
    kind: String,
    election: Option<String>,
    node: Option<String>,
    term: i64,
    data: serde_json::Value,
}

/// A list, of whatever.
#[derive(Deserialize)]
pub(crate) struct ListWords<T> {
    pub list: Vec<T>,
}

impl CandidateWords {
    pub(crate) fn meant(self) -> Result<tenure_store::Candidate, StoreError> {
        Ok(tenure_store::Candidate { node: named(self.node)?, priority: self.priority })
    }
}

impl ElectionWords {
    pub(crate) fn meant(self) -> Result<(ElectionName, Record), StoreError> {
        Ok((named(self.election)?, self.record.meant()?))
    }
}

impl NodeWords {
    pub(crate) fn meant(self) -> Result<NodeRecord, StoreError> {
        let since = moment(self.unhealthy_us.unwrap_or_default());
        Ok(NodeRecord {
            info: NodeInfo {
                id: named(self.node)?,
                hostname: self.hostname,
                address: self.address,
                pid: self.pid,
                version: self.version,
                labels: Labels::of(self.labels).map_err(|error| foreign(&error.to_string()))?,
            },
            state: match self.state.as_str() {
                "live" => NodeState::Live,
                "left" => NodeState::Left,
                _ => NodeState::Expired,
            },
            pulse: self.pulse.meant()?,
            opened_at: moment(self.opened_us),
            renewed_at: moment(self.renewed_us),
            unhealthy: self.problem.map(|problem| Unhealthy { problem: Problem::new(&problem), since }),
        })
    }
}

impl EventWords {
    pub(crate) fn meant(self) -> Result<EventRecord, StoreError> {
        let kind =
            EventKind::from_name(&self.kind).ok_or_else(|| foreign(&format!("the event `{}`", self.kind)))?;
        Ok(EventRecord {
            id: self.id,
            sequence: self.sequence,
            time: moment(self.time_us),
            kind,
            election: self.election.map(named).transpose()?,
            node: self.node.map(named).transpose()?,
            term: term(self.term),
            data: self.data.to_string(),
        })
    }
}

fn moment(micros: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(micros)
}
