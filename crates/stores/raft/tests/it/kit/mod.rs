//! What the tests of this store share: a group of three members on loopback, in one process.
#![allow(dead_code, reason = "not every test needs everything")]

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tenure_core::{ElectionName, NodeId, SessionId, Standing, Term};
use tenure_raft::{MemberInfo, RaftStore};
use tenure_store::{Claim, NodeInfo, Open, Options, Store, StoreUrl};
pub use tenure_testkit::patience::patiently;
use tenure_testkit::server::free_port;

/// Addresses on loopback that nobody uses now.
pub fn addresses(count: usize) -> Vec<String> {
    (0..count).map(|_| format!("127.0.0.1:{}", free_port())).collect()
}

pub fn client_url(peers: &[String]) -> String {
    format!("raft://{}", peers.join(","))
}

pub fn member_url(peers: &[String], data: &Path, address: &str) -> String {
    format!("raft://{}?data={}&listen={address}", peers.join(","), data.display())
}

pub async fn connect(url: &str) -> RaftStore {
    RaftStore::connect(&StoreUrl::parse(url).unwrap()).await.unwrap()
}

/// A directory in memory, where there is such a place: a disk would add nothing but its stalls.
pub fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Three members.
pub struct Trio {
    pub peers: Vec<String>,
    pub members: Vec<RaftStore>,
    pub directories: Vec<TempDir>,
}

impl Trio {
    pub async fn start() -> Self {
        let peers = addresses(3);
        let directories: Vec<_> = (0..3).map(|_| directory()).collect();
        let mut members = Vec::new();
        for (peer, directory) in peers.iter().zip(&directories) {
            members.push(connect(&member_url(&peers, directory.path(), peer)).await);
        }
        Self { peers, members, directories }
    }

    pub async fn client(&self, options: Options) -> RaftStore {
        let url = StoreUrl { options, ..StoreUrl::parse(&client_url(&self.peers)).unwrap() };
        RaftStore::connect(&url).await.unwrap()
    }
}

/// Waits until the group has so many members, all of them up to date.
pub async fn settled(store: &RaftStore, count: usize) -> Vec<MemberInfo> {
    patiently(async || {
        let members = store.members().await.map_err(|error| error.to_string())?;
        let ready = |member: &MemberInfo| member.voter && member.behind == Some(0);
        match members.len() == count && members.iter().all(ready) {
            true => Ok(members),
            false => Err(format!("{members:?}")),
        }
    })
    .await
}

/// The session of a node: its name is its number.
fn session(node: &str) -> SessionId {
    SessionId::from_u128(node.bytes().fold(1, |number, byte| number << 8 | u128::from(byte)))
}

/// Opens the session of a node.
pub async fn open(store: &RaftStore, node: &str) -> SessionId {
    let info = NodeInfo::new(NodeId::new(node).unwrap(), "here");
    let (session, ttl) = (session(node), Duration::from_secs(300));
    let open = Open { session, sequence: 1, ttl, node: info, supersedes: None, over: None };
    patiently(async || store.open(open.clone()).await).await;
    session
}

/// Wins an election, gives it up, and tells the term.
pub async fn term(store: &RaftStore, node: &str) -> Term {
    let election = ElectionName::new("grown").unwrap();
    let told = patiently(async || store.claim(Claim::plain(session(node), election.clone(), 1)).await).await;
    match told.value {
        Standing::Leading { term } => {
            let resign = tenure_store::Resign {
                session: session(node),
                election: election.clone(),
                attempt: 2,
                term: Some(term),
                to: None,
                cause: Default::default(),
            };
            patiently(async || store.resign(resign.clone()).await).await;
            term
        }
        other => panic!("not granted: {other:?}"),
    }
}
