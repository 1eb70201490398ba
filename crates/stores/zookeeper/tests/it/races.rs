//! What comes between two steps of a verb. Whoever takes the steps is connected through a proxy, which holds the request
//! that names a certain place in line; meanwhile others act, and then the request arrives.

use std::time::Duration;

use crate::common::{LINE, claiming, connect, line, name, open_for, person, win};
use tenure_core::{NodeId, SessionId, Standing};
use tenure_store::{Claim, Deletion, Resign, Store, StoreUrl};
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, soon, until};
use tenure_zookeeper::ZooKeeperStore;
use zookeeper_client::{Acls, Client, CreateMode};

/// Nobody renews.
const LONG: Duration = Duration::from_secs(3_600);
/// As many places as are deleted by one transaction.
const TRANSACTION: u128 = 256;

async fn claim(store: &ZooKeeperStore, session: SessionId, attempt: u64) -> Standing {
    soon(store.claim(Claim { attempt, ..claiming(session) })).await.unwrap().value
}

/// Claims what another one holds.
async fn stand(store: &ZooKeeperStore, session: SessionId) {
    let standing = claim(store, session, 1).await;
    assert!(matches!(standing, Standing::Waiting { .. }), "another one leads: {standing:?}");
}

async fn resign(store: &ZooKeeperStore, session: SessionId, to: Option<&str>) {
    let to = to.map(|to| NodeId::new(to).unwrap());
    let resign = Resign {
        session,
        election: name(ELECTION),
        attempt: 2,
        term: None,
        to,
        cause: tenure_store::Cause::Resigned,
    };
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

/// A store whose connection is not given up while it is held.
async fn patient(port: u16) -> ZooKeeperStore {
    let connector = Client::connector().with_session_timeout(LONG);
    let client = soon(connector.connect(&format!("127.0.0.1:{port}"))).await.unwrap();
    let url = StoreUrl::parse("zk:///tenure?tick=200ms").unwrap();
    soon(ZooKeeperStore::with_client(client, &url)).await.unwrap()
}

/// Places in line, in the names of sessions that nobody has opened.
async fn crowd(person: &Client, count: u128) {
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    for number in 0..count {
        let path = format!("{LINE}/c-7fffffff-{}-", SessionId::from_u128(1_000_000 + number));
        person.create(&path, br#"{"node":"one-of-many"}"#, &options).await.unwrap();
    }
}

/// A candidate stands for the first time, and its claim is not answered yet. So it has not seen the election from before
/// the end, and may be granted the lease after it.
async fn granted_while_the_election_is_ended(waiting_before: u128) {
    let server = ZooKeeper::start();
    let (store, person) = (connect(&server.url()).await.unwrap(), person(&server).await);
    let proxy = Proxy::before(server.port(0));
    let ending = patient(proxy.port()).await;
    let (leads, stands, comes) =
        (open_for(&store, 1, LONG).await, open_for(&store, 2, LONG).await, open_for(&store, 3, LONG).await);
    win(&store, leads).await;
    crowd(&person, waiting_before).await;
    stand(&store, stands).await;

    proxy.hold_at(names(stands));
    let deletion = tokio::spawn(async move { ending.delete(name(ELECTION), true).await });
    until(async || proxy.has_held()).await;
    resign(&store, leads, None).await;
    let standing = claim(&store, stands, 3).await;
    assert!(matches!(standing, Standing::Leading { .. }), "it is the first in line: {standing:?}");
    proxy.release();
    assert_eq!(soon(deletion).await.unwrap().unwrap().value, Deletion::Ended);

    assert_eq!(holder(&store).await, Some(stands), "it leads, and nobody has taken that from it");
    let standing = claim(&store, comes, 1).await;
    assert!(matches!(standing, Standing::Waiting { .. }), "there is a leader: {standing:?}");
}

#[tokio::test]
async fn a_candidate_that_is_granted_the_lease_while_the_election_is_ended_keeps_its_place() {
    granted_while_the_election_is_ended(0).await;
}

#[tokio::test]
async fn a_candidate_at_the_end_of_a_long_line_that_is_granted_the_lease_after_the_end_keeps_its_place() {
    granted_while_the_election_is_ended(TRANSACTION).await;
}

#[tokio::test]
async fn an_end_withdraws_all_candidates_however_many_they_are() {
    let server = ZooKeeper::start();
    let (store, person) = (connect(&server.url()).await.unwrap(), person(&server).await);
    let leads = open_for(&store, 1, LONG).await;
    win(&store, leads).await;
    crowd(&person, 2 * TRANSACTION + 1).await;
    assert_eq!(soon(store.delete(name(ELECTION), true)).await.unwrap().value, Deletion::Ended);
    let left = line(&person).await;
    assert!(left.len() == 1 && left[0].contains(&leads.to_string()), "only the leader's is left: {left:?}");
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

/// Its lease would be free, and nobody granted it, until the next in line is woken and asks.
#[tokio::test]
async fn a_lease_that_is_passed_on_to_a_session_while_it_is_closed_goes_to_the_next_by_the_same_write() {
    let server = ZooKeeper::start();
    let store = connect(&server.url()).await.unwrap();
    let proxy = Proxy::before(server.port(0));
    let closing = patient(proxy.port()).await;
    let (leads, next) = (open_for(&store, 1, LONG).await, open_for(&store, 3, LONG).await);
    let closes = open_for(&closing, 2, LONG).await;
    win(&store, leads).await;
    stand(&closing, closes).await;
    stand(&store, next).await;

    proxy.hold_at(names(closes));
    let closed = tokio::spawn(async move { closing.close(closes, Default::default()).await });
    until(async || proxy.has_held()).await;
    resign(&store, leads, None).await;
    assert_eq!(holder(&store).await, Some(closes), "it was the first in line");
    proxy.release();
    soon(closed).await.unwrap().unwrap();
    assert_eq!(holder(&store).await, Some(next));
}
