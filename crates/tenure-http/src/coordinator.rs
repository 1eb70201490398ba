//! A node that stands for an election, and leads it without work of its own: the watch over the cluster
//! is the work.

use std::convert::Infallible;
use std::time::Duration;

use tenure::{Election, ElectionError, LeadError, Leadership};
use tokio::task::JoinHandle;

/// How soon to stand again after something went wrong.
const RETRY: Duration = Duration::from_millis(500);

/// Stands for an election until it is dropped, again and again.
#[derive(Debug)]
pub struct Coordinator {
    task: JoinHandle<()>,
}

impl Coordinator {
    /// Stands from now on, on the caller's Tokio runtime.
    #[must_use]
    pub fn start(election: Election) -> Self {
        Self { task: tokio::spawn(stand(election)) }
    }

    /// Stands no longer. When this returns, a term that this node held is given up, and the reason is that it
    /// resigned: a node that is closed meanwhile would give another one.
    pub async fn stop(mut self) {
        self.task.abort();
        // It was cancelled, or had ended.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        // Withdraws, or gives the lease back: nothing is left to stop.
        self.task.abort();
    }
}

async fn stand(election: Election) {
    // Whatever is let through a gate meanwhile is waited for, before the lease is given back.
    let serve = async |leadership: Leadership| {
        // Where the store keeps no ledger, there is no work to divide.
        if let Err(error) = leadership.coordinate() {
            tracing::debug!(target: "tenure", %error, "no partitions are divided");
        }
        leadership.lost().await;
        Ok::<_, Infallible>(())
    };
    loop {
        match election.lead(serve).await {
            Ok(()) => {}
            // This node only watches.
            Err(LeadError::Election(ElectionError::NotEligible)) => std::future::pending().await,
            Err(LeadError::Election(ElectionError::Closed(_))) => return,
            // The election was deleted: standing starts it anew.
            Err(error) => {
                tracing::warn!(target: "tenure", election = %election.name(), %error, "stands again soon");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}
