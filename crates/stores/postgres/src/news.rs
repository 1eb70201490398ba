//! News: LISTEN, on the connection that requests are made over as well.

use tenure_core::Namespace;
use tenure_sql::{Ears, Line};
use tenure_store::{Hint, StoreError};

use crate::address::{Address, News};
use crate::connect::connect;
use crate::database::Postgres;
use crate::error::classify;

/// Listens on one connection until it ends.
pub(crate) async fn hear(
    address: &Address,
    namespace: &Namespace,
    ears: &Ears,
    line: &Line<Postgres>,
) -> Result<(), StoreError> {
    let (address, here) = match &address.news {
        News::Here => (address, true),
        News::There(there) => (&**there, false),
        News::Nowhere => return Ok(()),
    };
    let (notified, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let wire = connect(address, Some(notified)).await?;
    wire.client.batch_execute(&format!("LISTEN \"{}\"", address.channel())).await.map_err(classify)?;
    ears.open();
    let listening = async {
        while let Some(notification) = heard.recv().await {
            match understand(notification.payload(), namespace) {
                Some(Told::Election(election)) => ears.tell_of(election),
                Some(Told::Everything) => ears.tell(&Hint::All),
                None => {}
            }
        }
    };
    if here {
        // Meanwhile it listens already: whoever uses the line may take a while. The connection ends with its use there.
        tokio::join!(line.adopt(wire), listening);
    } else {
        listening.await;
        drop(wire);
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
