//! News: LISTEN on a connection of its own. Hints, and never truth: when it is cut, waits are longer, and
//! nothing else changes.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tenure_core::{ElectionName, Namespace};
use tenure_store::{Hint, Listeners, StoreError};

use crate::address::Address;
use crate::connect::connect;
use crate::error::classify;

/// How soon a connection that was lost is opened again.
const RETRY: Duration = Duration::from_millis(500);

/// Listens until nobody is left to tell.
pub(crate) async fn listen(address: Arc<Address>, namespace: Namespace, listeners: Weak<Listeners>) {
    while listeners.strong_count() > 0 {
        if let Err(error) = hear(&address, &namespace, &listeners).await {
            tracing::debug!(%error, "news from PostgreSQL is interrupted");
        }
        // Whatever happened since was not heard.
        tell(&listeners, &Hint::All);
        tokio::time::sleep(RETRY).await;
    }
}

fn tell(listeners: &Weak<Listeners>, hint: &Hint) {
    if let Some(listeners) = listeners.upgrade() {
        listeners.post(hint);
    }
}

/// Listens on one connection until it ends.
async fn hear(
    address: &Address,
    namespace: &Namespace,
    listeners: &Weak<Listeners>,
) -> Result<(), StoreError> {
    let (notified, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let client = connect(address, Some(notified)).await?;
    client.batch_execute(&format!("LISTEN \"{}\"", address.channel())).await.map_err(classify)?;
    // First listen, then look: in between, nothing can be missed.
    tell(listeners, &Hint::All);
    while let Some(notification) = heard.recv().await {
        if let Some(hint) = understand(notification.payload(), namespace) {
            tell(listeners, &hint);
        }
    }
    Ok(())
}

/// `NAMESPACE ELECTION`, or only the namespace: everything in it.
fn understand(payload: &str, namespace: &Namespace) -> Option<Hint> {
    match payload.split_once(' ') {
        Some((of, election)) if of == namespace.as_str() => Some(
            // A name that is none was not written by us; but something has happened.
            ElectionName::new(election).map_or(Hint::All, Hint::Election),
        ),
        None if payload == namespace.as_str() => Some(Hint::All),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_of_the_namespace_is_heard() {
        let here = Namespace::new("here").unwrap();
        let election = |name: &str| Some(Hint::Election(ElectionName::new(name).unwrap()));
        assert_eq!(understand("here nightly report", &here), election("nightly report"));
        assert_eq!(understand("here", &here), Some(Hint::All));
        assert_eq!(understand("there nightly", &here), None);
        assert_eq!(understand("there", &here), None);
    }
}
