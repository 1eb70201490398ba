//! What the tests of this store share: sessions without a node, and a person with zkCli.
#![allow(dead_code, reason = "every test file uses its own part of it")]

use std::time::Duration;

use tenure_core::{ElectionName, NodeId, Opening, SessionId, Standing, Term};
use tenure_store::{Claim, NodeInfo, Open, Store, StoreError, StoreUrl};
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, soon};
use tenure_zookeeper::ZooKeeperStore;
use zookeeper_client::Client;

pub async fn connect(url: &str) -> Result<ZooKeeperStore, StoreError> {
    soon(ZooKeeperStore::connect(&StoreUrl::parse(url).unwrap())).await
}

pub fn name(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

/// Opens session `number`, of node `n<number>`; the lease that was granted.
pub async fn granted(store: &ZooKeeperStore, number: u128, ttl: Duration) -> Result<Duration, StoreError> {
    let session = SessionId::from_u128(number);
    let node = NodeInfo::new(NodeId::new(format!("n{number}")).unwrap(), "host");
    let open = Open { session, sequence: 1, ttl, node, supersedes: None, over: None };
    match soon(store.open(open)).await?.value {
        Opening::Opened { ttl } => Ok(ttl),
        other => panic!("{other:?}"),
    }
}

pub async fn open_for(store: &ZooKeeperStore, number: u128, ttl: Duration) -> SessionId {
    granted(store, number, ttl).await.unwrap();
    SessionId::from_u128(number)
}

pub fn claiming(session: SessionId) -> Claim {
    Claim::plain(session, name(ELECTION), 1)
}

/// Claims an election that is free.
pub async fn win(store: &ZooKeeperStore, session: SessionId) -> Term {
    match soon(store.claim(claiming(session))).await.unwrap().value {
        Standing::Leading { term } => term,
        other => panic!("not granted: {other:?}"),
    }
}

/// With the servers' tick in the URL. Without, it is found out, on a busy machine only roughly: then short leases are
/// refused.
pub fn ticking(url: &str) -> String {
    format!("{url}?tick=200ms")
}

/// A person with zkCli.
pub async fn person(server: &ZooKeeper) -> Client {
    Client::connect(&server.hosts()).await.unwrap()
}

/// Where the candidates of [`ELECTION`] are.
pub const LINE: &str = "/tenure/default/lines/reports";

/// Who is in line, as the names of the znodes tell.
pub async fn line(person: &Client) -> Vec<String> {
    person.list_children(LINE).await.unwrap_or_default()
}
