//! A node that works says so to the coordinator, once per session and whenever that changes.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionName, SessionId};
use tenure_store::{Enlistment, Pending, Store, StoreError};
use tokio::sync::watch;

/// Keeps what the coordinator shall know of this node in the ledger: the last word counts.
pub(super) fn keep_enlisted(
    store: Arc<dyn Store>,
    election: ElectionName,
    mut wanted: watch::Receiver<Option<(SessionId, String)>>,
    limit: Duration,
    pause: Duration,
) -> Pending<'static, ()> {
    Box::pin(async move {
        let mut trouble = Trouble::default();
        while wanted.changed().await.is_ok() {
            loop {
                let word = wanted.borrow_and_update().clone();
                let (Some((session, document)), Some(ledger)) = (word, store.ledger()) else { break };
                let enlistment = Enlistment { election: election.clone(), session, document };
                let problem = match tokio::time::timeout(limit, ledger.enlist(enlistment)).await {
                    Ok(Ok(_) | Err(StoreError::SessionLost)) => {
                        trouble = Trouble::default();
                        break;
                    }
                    Ok(Err(error)) => error,
                    Err(_) => StoreError::unavailable("no answer in time"),
                };
                if let Some(error) = trouble.tell(&problem) {
                    tracing::warn!(
                        target: "tenure", %election, error,
                        "this node is not registered as a worker, so it is given no partitions; it tries again"
                    );
                }
                tokio::time::sleep(pause).await;
            }
        }
    })
}

/// An outage of the store is told of elsewhere, and passes: only if it takes so many attempts is it told here, too.
const PATIENT_ATTEMPTS: u32 = 5;

/// Why it does not work, told once.
#[derive(Default)]
pub(super) struct Trouble {
    attempts: u32,
    told: Option<String>,
}

impl Trouble {
    /// What to log of a failed attempt: the first refusal, and whatever else goes on for long, but nothing twice.
    pub(super) fn tell(&mut self, problem: &StoreError) -> Option<String> {
        self.attempts += 1;
        let refused = matches!(problem, StoreError::Misconfigured(_));
        if !refused && self.attempts < PATIENT_ATTEMPTS {
            return None;
        }
        let text = problem.to_string();
        // What differs from one attempt to the next is not worth a second line, but a refusal is.
        let is_new = if refused { self.told.as_ref() != Some(&text) } else { self.told.is_none() };
        is_new.then(|| self.told.insert(text).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_is_refused_is_told_why_once() {
        let mut trouble = Trouble::default();
        let refused = StoreError::misconfigured("the request is too large: use fewer labels");
        let told = trouble.tell(&refused).expect("it is told at once");
        assert!(told.contains("use fewer labels"), "{told}");
        for _ in 0..100 {
            assert_eq!(trouble.tell(&refused), None);
        }
        assert!(trouble.tell(&StoreError::misconfigured("another reason")).is_some());
    }

    #[test]
    fn a_short_outage_is_not_told_and_a_long_one_once() {
        let mut trouble = Trouble::default();
        let told: Vec<_> = (1..100)
            .filter(|attempt| trouble.tell(&StoreError::unavailable(format!("attempt {attempt}"))).is_some())
            .collect();
        assert_eq!(told, [PATIENT_ATTEMPTS]);
    }
}
