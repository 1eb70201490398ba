//! Failback: a candidate asks a leader of lower priority to make way for it.
//!
//! Any operator may ask that of a leader at any time (`tenure transfer`), so nothing here is a matter of safety.
//! The pause is one of manners: whoever comes and goes, or is unwell, takes nothing from anybody.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionKey, ElectionName, Instant, NodeId};
use tenure_store::{NodeState, Store, StoreError};

use super::Driver;
use crate::health::Health;

impl Driver {
    /// Somebody leads, or this node stands: whether one should make way for the other is looked at after a ttl.
    pub(super) fn consider_failback(&mut self, key: ElectionKey, now: Instant) {
        let (me, at) = (&self.info.id, now + self.ttl);
        let Some(slot) = self.slots.get_mut(key).filter(|_| self.failback) else { return };
        let behind = slot.candidate.is_some() && slot.leader().is_some_and(|leader| leader != me);
        slot.failback_at = behind.then_some(at);
        if behind {
            self.failbacks.push(Reverse((at, key)));
        }
    }

    pub(super) fn fail_back_when_due(&mut self, now: Instant) {
        while let Some(Reverse((at, key))) =
            self.failbacks.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.failbacks.pop();
            let Some(slot) = self.slots.get(key).filter(|slot| slot.failback_at == Some(at)) else {
                continue;
            };
            let (election, leader) = (slot.name.clone(), slot.leader().cloned());
            // As long as it stands behind somebody it looks again: its word may be lost, or priorities change.
            self.consider_failback(key, now);
            let stands = self.slots.get(key).is_some_and(|slot| slot.failback_at.is_some());
            let well = self.health.as_ref().is_none_or(Health::is_well);
            if let Some(leader) = leader.filter(|_| stands && well) {
                self.ask_to_make_way(election, leader);
            }
        }
    }

    fn ask_to_make_way(&self, election: ElectionName, leader: NodeId) {
        let limit = self.ttl.max(Duration::from_secs(1));
        let (store, me, priority) = (Arc::clone(&self.store), self.info.id.clone(), self.settings.priority);
        self.asides.push(Box::pin(async move {
            let asking = ask(&*store, election, &leader, me, priority);
            if let Ok(Err(error)) = tokio::time::timeout(limit, asking).await {
                tracing::debug!(target: "tenure", %error, "the leader was not asked to make way");
            }
        }));
    }
}

async fn ask(
    store: &dyn Store,
    election: ElectionName,
    leader: &NodeId,
    me: NodeId,
    priority: i32,
) -> Result<(), StoreError> {
    let nodes = store.nodes().await?.value;
    let lives = nodes.iter().find(|node| node.info.id == *leader && node.state == NodeState::Live);
    if lives.is_none_or(|leader| leader.info.labels.priority() >= priority) {
        return Ok(());
    }
    // Somebody else may lead by now, of whom nothing is known here.
    let holder = store.read(election.clone()).await?.value.holder;
    if holder.is_none_or(|holder| holder.node != *leader) {
        return Ok(());
    }
    tracing::info!(target: "tenure", %election, node = %me, %leader, "asking a leader of lower priority to make way");
    store.petition(election, Some(me)).await.map(drop)
}
