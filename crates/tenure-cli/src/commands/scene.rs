//! What is to be seen of an election, and how it changes.

use std::sync::Arc;
use std::time::Duration;

use tenure::{ElectionName, EventKind, EventRecord, NodeId, NodeRecord, Store};
use tenure_core::{Instant, NodeState};
use tenure_store::clock;

use super::remote::Remote;
use super::sight::{Sight, age};
use super::source::{Division, FIRST, Look, Source, concerns};
use crate::failure::Failure;

pub struct Scene {
    source: Source,
    pub sight: Sight,
    pub nodes: Vec<NodeRecord>,
    /// Who stands behind the leader; `None` where that is not told.
    candidates: Option<Vec<NodeId>>,
    /// What has happened in this election and to the nodes.
    pub events: Vec<EventRecord>,
    /// How the work is divided, where it was asked for.
    pub division: Option<Division>,
    last: u64,
    /// When it was looked at.
    pub at: Instant,
}

impl Scene {
    pub async fn look(store: Arc<dyn Store>, election: ElectionName) -> Result<Self, Failure> {
        Self::of(Source::Store { store, election }).await
    }

    pub async fn over(remote: Remote) -> Result<Self, Failure> {
        Self::of(Source::Node(remote)).await
    }

    async fn of(mut source: Source) -> Result<Self, Failure> {
        let Look { sight, nodes, candidates, events, last } = source.look(0).await?;
        Ok(Self { source, sight, nodes, candidates, events, division: None, last, at: clock::now() })
    }

    /// Looks again; what has happened since.
    pub async fn again(&mut self) -> Result<Vec<EventRecord>, Failure> {
        let Look { sight, nodes, candidates, events, last } = self.source.look(self.last).await?;
        (self.sight, self.nodes, self.last, self.at) = (sight, nodes, last, clock::now());
        self.candidates = candidates;
        self.events.extend(events.iter().filter(|event| concerns(event, &self.sight.election)).cloned());
        let surplus = self.events.len().saturating_sub(FIRST as usize);
        self.events.drain(..surplus);
        Ok(events)
    }

    /// Looks also at who works on what: all of it, so only when something has happened that may have changed it.
    pub async fn divide(&mut self, events: &[EventRecord]) -> Result<(), Failure> {
        if self.division.is_none() || events.iter().any(changes_owners) {
            self.division = Some(self.source.division().await?);
        }
        Ok(())
    }

    pub fn leader(&self) -> Option<&str> {
        self.sight.leader_id.as_deref()
    }

    /// Whether a node may stand for this election, as far as is known.
    pub fn stands(&self, name: &str) -> bool {
        let candidates = self.candidates.as_ref();
        candidates.is_none_or(|candidates| candidates.iter().any(|node| node.as_str() == name))
    }

    pub fn term(&self) -> u64 {
        self.sight.term
    }

    /// What is left of the lease now, and its whole length.
    pub fn lease(&self) -> Option<(Duration, Duration)> {
        let (age, left) = (self.sight.age_ms?, self.sight.expires_in_ms?);
        let left_then = Duration::from_millis(left);
        let left = left_then.saturating_sub(clock::now().since(self.at));
        Some((left, Duration::from_millis(age) + left_then))
    }

    pub fn node(&self, name: &str) -> Option<&NodeRecord> {
        self.nodes.iter().find(|node| node.info.id.as_str() == name)
    }

    /// Whether this process is registered, and was heard of within its ttl.
    pub fn lives(&self, name: &str, pid: u32) -> bool {
        self.node(name).is_some_and(|node| {
            node.state == NodeState::Live
                && node.info.pid == pid
                && age(node.pulse.age).is_none_or(|age| age < node.pulse.ttl)
        })
    }
}

/// Whether somebody may own something else since. Sessions that are over own nothing.
fn changes_owners(event: &EventRecord) -> bool {
    matches!(
        event.kind,
        EventKind::PlanPublished
            | EventKind::PartitionReleased
            | EventKind::NodeJoined
            | EventKind::NodeLeft
            | EventKind::NodeExpired
    )
}
