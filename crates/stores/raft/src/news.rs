//! News: what a member applies is told to those who listen. Hints, and never truth.

use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use tenure_core::Namespace;
use tenure_store::{Hint, Listeners};

use crate::group::Group;
use crate::server::ALIVE_EVERY;
use crate::wire::{Request, Response};

/// How soon another member is listened to.
const RETRY: Duration = Duration::from_millis(200);

/// Listens until nobody is left to tell: to the member of this process, or else to one after the other.
pub(crate) async fn listen(group: Weak<Group>, namespace: Namespace, listeners: Weak<Listeners>) {
    let mut turn = 0;
    while listeners.strong_count() > 0 {
        let Some(group) = group.upgrade() else { return };
        let ended = match &group.place {
            Some(place) => {
                let place = Arc::clone(place);
                drop(group);
                match place.member() {
                    Ok(member) => {
                        let hints = member.state.subscribe(&namespace);
                        // Only the hints are held: a member that is to be started again must be let go.
                        drop((member, place));
                        pass_on(hints, &listeners).await
                    }
                    Err(_) => Ok(()),
                }
            }
            None => {
                let peer = group.peers()[turn % group.peers().len()].clone();
                turn += 1;
                let lines = Arc::clone(&group.lines);
                drop(group);
                hear(&lines, &peer, &namespace, &listeners).await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "news from the group is interrupted");
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

async fn pass_on(mut hints: tenure_store::Hints, listeners: &Weak<Listeners>) -> io::Result<()> {
    // First listen, then look: in between, nothing can be missed.
    tell(listeners, &Hint::All);
    while let Some(hint) = hints.next().await {
        tell(listeners, &hint);
    }
    Ok(())
}

async fn hear(
    lines: &crate::lines::Lines,
    peer: &str,
    namespace: &Namespace,
    listeners: &Weak<Listeners>,
) -> io::Result<()> {
    let mut connection = lines.connect(peer).await?;
    connection.send(&Request::Watch { namespace: namespace.clone() }).await?;
    let mut first = true;
    loop {
        let told =
            tokio::time::timeout(ALIVE_EVERY * 5, connection.receive()).await.map_err(io::Error::other)??;
        if std::mem::take(&mut first) {
            tell(listeners, &Hint::All);
        }
        match told {
            Response::Hint(hint) => tell(listeners, &hint),
            Response::Alive => {}
            other => return Err(io::Error::other(format!("{other:?}"))),
        }
    }
}
