//! Failback: carries out what the core's [`Failback`](tenure_core::Failback) decides.

use std::sync::Arc;

use tenure_core::{ElectionKey, ElectionName, FailbackAttempt, FailbackRequest, Instant, NodeId};
use tenure_store::{Store, StoreError, clock};

use super::Driver;
use crate::health::Health;

impl Driver {
    /// Makes the attempts that are due: each asks the store on its own, beside everything else.
    pub(super) fn fail_back_when_due(&mut self, now: Instant) {
        let healthy = self.health.as_ref().is_none_or(Health::is_well);
        let Some(failback) = &mut self.failback else { return };
        failback.handle_timeout(healthy, now);
        while let Some(attempt) = failback.poll_attempt() {
            let Some(slot) = self.slots.get(attempt.election()) else { continue };
            let (store, me, election) = (Arc::clone(&self.store), self.info.id.clone(), slot.name.clone());
            let timeout = attempt.give_up().since(now);
            self.asides.push(Box::pin(async move {
                let asking = ask(&*store, election, me, attempt);
                if let Ok(Err(error)) = tokio::time::timeout(timeout, asking).await {
                    tracing::debug!(target: "tenure", %error, "the leader was not asked to make way");
                }
            }));
        }
    }

    /// The node is a candidate no longer.
    pub(super) fn leave_failback(&mut self, key: ElectionKey) {
        if let Some(failback) = &mut self.failback {
            failback.leave(key);
        }
    }

    /// Forgets an election that nobody needs any more.
    pub(super) fn tidy(&mut self, key: ElectionKey) {
        let forgotten = self.slots.tidy(key, &mut self.machine);
        if let Some(failback) = self.failback.as_mut().filter(|_| forgotten) {
            failback.remove(key);
        }
    }
}

async fn ask(
    store: &dyn Store,
    election: ElectionName,
    me: NodeId,
    mut attempt: FailbackAttempt,
) -> Result<(), StoreError> {
    loop {
        let goes_on = match attempt.request() {
            FailbackRequest::Nodes => {
                let nodes = store.nodes().await?.value;
                let listed =
                    nodes.iter().map(|node| (&node.info.id, node.state, node.info.labels.priority()));
                attempt.nodes(listed, clock::now())
            }
            FailbackRequest::Read => {
                let record = store.read(election.clone()).await?.value;
                attempt.record(&record, clock::now())
            }
            FailbackRequest::Petition => {
                let leader = attempt.leader();
                tracing::info!(
                    target: "tenure", %election, node = %me, %leader,
                    "asking a leader of lower priority to make way",
                );
                return store.petition(election, Some(me)).await.map(drop);
            }
        };
        if !goes_on {
            return Ok(());
        }
    }
}
