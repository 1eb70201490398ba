//! News: LISTEN on a connection of its own.

use tenure_core::Namespace;
use tenure_sql::Ears;
use tenure_store::{Hint, StoreError};

use crate::address::{Address, News};
use crate::connect::connect;
use crate::error::classify;

/// Listens on one connection until it ends.
pub(crate) async fn hear(address: &Address, namespace: &Namespace, ears: &Ears) -> Result<(), StoreError> {
    let address = match &address.news {
        News::Here => address,
        News::There(there) => there,
        News::Nowhere => return Ok(()),
    };
    let (notified, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let wire = connect(address, Some(notified)).await?;
    wire.client.batch_execute(&format!("LISTEN \"{}\"", address.channel())).await.map_err(classify)?;
    ears.open();
    while let Some(notification) = heard.recv().await {
        match understand(notification.payload(), namespace) {
            Some(Told::Election(election)) => ears.tell_of(election),
            Some(Told::Everything) => ears.tell(&Hint::All),
            None => {}
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Told<'a> {
    Election(&'a str),
    Everything,
}

/// `NAMESPACE ELECTION`, with no name after the space: the nodes; only the namespace: everything in it.
fn understand<'a>(payload: &'a str, namespace: &Namespace) -> Option<Told<'a>> {
    match payload.split_once(' ') {
        Some((of, election)) if of == namespace.as_str() => Some(Told::Election(election)),
        None if payload == namespace.as_str() => Some(Told::Everything),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_of_the_namespace_is_heard() {
        let here = Namespace::new("here").unwrap();
        assert_eq!(understand("here nightly report", &here), Some(Told::Election("nightly report")));
        assert_eq!(understand("here ", &here), Some(Told::Election("")));
        assert_eq!(understand("here", &here), Some(Told::Everything));
        assert_eq!(understand("there nightly", &here), None);
        assert_eq!(understand("there", &here), None);
    }
}
