//! The store of a command: found, connected to, and asked with a limit.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure::{ConnectError, Namespace, Options, Store, StoreError};
use tenure_store::Told;

use crate::cli::Global;
use crate::failure::Failure;

/// How long a question may take before the store counts as not reachable.
const LIMIT: Duration = Duration::from_secs(10);

/// Connects to the store that the settings name.
pub async fn connect(global: &Global) -> Result<Arc<dyn Store>, Failure> {
    let url = url(global);
    match tokio::time::timeout(LIMIT, open(url.as_deref(), &global.namespace)).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(silent()),
    }
}

/// Connects to a store, or to the default one, however long that takes.
pub async fn open(url: Option<&str>, namespace: &Namespace) -> Result<Arc<dyn Store>, ConnectError> {
    match url {
        Some(url) => tenure::connect(url).await,
        None => {
            let namespace = namespace.clone();
            tenure::connect_default_with(Options { namespace, ..Options::default() }).await
        }
    }
}

/// The URL in force, with the namespace in it; `None`: the default store.
pub fn url(global: &Global) -> Option<String> {
    let url = global.store.as_ref()?;
    let names_one = url
        .split_once('?')
        .is_some_and(|(_, query)| query.split('&').any(|pair| pair.starts_with("namespace=")));
    if names_one {
        return Some(url.clone());
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    Some(format!("{url}{joint}namespace={}", global.namespace))
}

/// Asks the store, and gives up on one that does not answer.
pub async fn ask<T>(question: impl Future<Output = Result<Told<T>, StoreError>>) -> Result<T, Failure> {
    Ok(told(question).await?.value)
}

/// The same, with the identity of the store that answered.
pub async fn told<T>(
    question: impl Future<Output = Result<Told<T>, StoreError>>,
) -> Result<Told<T>, Failure> {
    match tokio::time::timeout(LIMIT, question).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(silent()),
    }
}

fn silent() -> Failure {
    Failure::Store(format!(
        "the store has not answered within {}; is it up, and reachable from here? `tenure check` tells more",
        humantime::format_duration(LIMIT)
    ))
}
