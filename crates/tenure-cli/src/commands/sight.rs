//! An election as several commands show it: the same names as over HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tenure::{ElectionName, NodeRecord, Store};
use tenure_core::{Age, Record, Term};

use crate::failure::Failure;
use crate::output::millis;
use crate::store::ask;

/// Who leads an election.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Sight {
    pub election: String,
    pub leader_id: Option<String>,
    pub term: u64,
    /// How long ago the leader renewed, where the store can tell.
    pub age_ms: Option<u64>,
    /// How much of its session is left.
    pub expires_in_ms: Option<u64>,
    pub hostname: Option<String>,
    pub api_url: Option<String>,
}

impl Sight {
    /// What a record says. A holder that has been silent for its whole life leads no longer.
    pub fn of(election: &ElectionName, record: &Record, nodes: &[NodeRecord]) -> Self {
        let holder = record
            .holder
            .as_ref()
            .filter(|holder| age(holder.pulse.age).is_none_or(|age| age < holder.pulse.ttl));
        let node =
            holder.and_then(|holder| nodes.iter().find(|node| node.session() == holder.pulse.stamp.session));
        let left = holder.and_then(|holder| Some(holder.pulse.ttl.saturating_sub(age(holder.pulse.age)?)));
        Self {
            election: election.to_string(),
            leader_id: holder.map(|holder| holder.node.to_string()),
            term: holder.map_or(record.term, |holder| holder.term).number(),
            age_ms: holder.and_then(|holder| age(holder.pulse.age)).map(millis),
            expires_in_ms: left.map(millis),
            hostname: node.map(|node| node.info.hostname.clone()),
            api_url: node.and_then(|node| node.info.address.clone()),
        }
    }

    /// Reads it from the store.
    pub async fn read(store: &Arc<dyn Store>, election: &ElectionName) -> Result<Self, Failure> {
        let record = ask(store.read(election.clone())).await?;
        let nodes = ask(store.nodes()).await?;
        Ok(Self::of(election, &record, &nodes))
    }
}

/// What can be said of an election in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Somebody leads.
    Led,
    /// Nobody leads, and whoever stands may.
    Free,
    /// It was ended, and nobody has stood for it since.
    Deleted,
}

impl State {
    pub fn of(sight: &Sight, record: &Record) -> Self {
        match () {
            () if sight.leader_id.is_some() => Self::Led,
            // Whoever is elected after the end gets a higher term.
            () if record.ended != Term::NONE && record.ended == record.term => Self::Deleted,
            () => Self::Free,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Led => "led",
            Self::Free => "free",
            Self::Deleted => "deleted",
        }
    }
}

/// The age of a pulse, where the store tells it.
pub fn age(age: Age) -> Option<Duration> {
    match age {
        Age::Unknown => None,
        Age::Exact(age) | Age::Told { age, .. } => Some(age),
    }
}
