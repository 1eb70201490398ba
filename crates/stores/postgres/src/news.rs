//! News: LISTEN, on the connection that requests are made over as well.

use tenure_core::Namespace;
use tenure_sql::{Ears, Line, hint};
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
            if let Some(hint) = understand(notification.payload(), namespace) {
                ears.tell(&hint);
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

/// Names on a line each: of the namespace, of the election (empty: about the nodes), and of the only node that it
/// concerns. Only the namespace: everything in it.
fn understand(payload: &str, namespace: &Namespace) -> Option<Hint> {
    let mut names = payload.split('\n');
    (names.next()? == namespace.as_str()).then(|| match names.next() {
        Some(election) => hint(election, names.next()),
        None => Hint::All,
    })
}

#[cfg(test)]
mod tests {
    use tenure_core::{ElectionName, NodeId};

    use super::*;

    #[test]
    fn only_news_of_the_namespace_is_heard() {
        let here = Namespace::new("over here").unwrap();
        let election = ElectionName::new("nightly report").unwrap();
        let node = NodeId::new("node 1").unwrap();
        assert_eq!(understand("over here\nnightly report", &here), Some(Hint::Election(election.clone())));
        let named = Hint::Named { election, node };
        assert_eq!(understand("over here\nnightly report\nnode 1", &here), Some(named));
        assert_eq!(understand("over here\n", &here), Some(Hint::Nodes));
        assert_eq!(understand("over here", &here), Some(Hint::All));
        assert_eq!(understand("there\nnightly report", &here), None);
        assert_eq!(understand("there", &here), None);
    }
}
