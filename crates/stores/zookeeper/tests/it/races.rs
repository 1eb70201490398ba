//! What comes between two steps of a verb. Whoever takes the steps is connected through a proxy, which holds the request
//! that names a certain place in line; meanwhile others act, and then the request arrives.

use std::time::Duration;

use crate::common::{claiming, connect, name, open_for, win};
use tenure_core::{NodeId, SessionId, Standing};
use tenure_store::{Claim, Resign, Store};
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, soon, until};
use tenure_zookeeper::ZooKeeperStore;

/// Nobody renews.
const LONG: Duration = Duration::from_secs(3_600);

async fn claim(store: &ZooKeeperStore, session: SessionId, attempt: u64) -> Standing {
    soon(store.claim(Claim { attempt, ..claiming(session) })).await.unwrap().value
}

/// Claims what another one holds.
async fn stand(store: &ZooKeeperStore, session: SessionId) {
    let standing = claim(store, session, 1).await;
    assert!(matches!(standing, Standing::Queued { .. }), "another one leads: {standing:?}");
}

async fn resign(store: &ZooKeeperStore, session: SessionId, to: Option<&str>) {
    let to = to.map(|to| NodeId::new(to).unwrap());
    let resign = Resign { session, election: name(ELECTION), attempt: 2, term: None, to };
    soon(store.resign(resign)).await.unwrap();
}

async fn holder(store: &ZooKeeperStore) -> Option<SessionId> {
    let record = soon(store.read(name(ELECTION))).await.unwrap().value;
    record.holder.map(|holder| holder.pulse.stamp.session)
}

/// Tells a request that names this session's place.
fn names(place: SessionId) -> impl FnMut(&[u8]) -> bool + Send {
    let words = format!("-{place}-");
    move |said| said.windows(words.len()).any(|window| window == words.as_bytes())
}

/// As through a server that is behind: what the resignation has read is older than the place of the candidate.
#[tokio::test]
async fn a_resignation_passes_the_lease_on_to_a_candidate_that_stands_since_it_has_read_the_line() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let proxy = Proxy::before(server.port(0));
    let resigning = connect(&server.url_by(proxy.port())).await.unwrap();
    let (leads, comes) = (open_for(&resigning, 1, LONG).await, open_for(&store, 2, LONG).await);
    win(&resigning, leads).await;

    proxy.hold_at(names(leads));
    let resigned = tokio::spawn(async move { resign(&resigning, leads, None).await });
    until(async || proxy.has_held()).await;
    stand(&store, comes).await;
    proxy.release();
    soon(resigned).await.unwrap();
    assert_eq!(holder(&store).await, Some(comes));
}

#[tokio::test]
async fn a_lease_is_handed_to_the_named_candidate_also_if_that_stands_since_the_line_was_read() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let proxy = Proxy::before(server.port(0));
    let resigning = connect(&server.url_by(proxy.port())).await.unwrap();
    let leads = open_for(&resigning, 1, LONG).await;
    let (next, named) = (open_for(&store, 2, LONG).await, open_for(&store, 3, LONG).await);
    win(&resigning, leads).await;
    stand(&store, next).await;

    // Its own place, or that of the next: both are named only after the line was read.
    let (mut leader, mut successor) = (names(leads), names(next));
    proxy.hold_at(move |said| leader(said) || successor(said));
    let resigned = tokio::spawn(async move { resign(&resigning, leads, Some("n3")).await });
    until(async || proxy.has_held()).await;
    stand(&store, named).await;
    proxy.release();
    soon(resigned).await.unwrap();
    assert_eq!(holder(&store).await, Some(named));
}
