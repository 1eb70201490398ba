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
        while wanted.changed().await.is_ok() {
            loop {
                let word = wanted.borrow_and_update().clone();
                let (Some((session, document)), Some(ledger)) = (word, store.ledger()) else { break };
                let enlistment = Enlistment { election: election.clone(), session, document };
                match tokio::time::timeout(limit, ledger.enlist(enlistment)).await {
                    Ok(Ok(_) | Err(StoreError::SessionLost)) => break,
                    Ok(Err(_)) | Err(_) => tokio::time::sleep(pause).await,
                }
            }
        }
    })
}
