//! What scenarios share: nodes, a person, sessions without a node, and waits that cannot hang.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionName, NodeId, SessionId, Standing, Term};
use tenure_store::{Claim, NodeInfo, Open, Store, StoreError, StoreUrl};

use super::SqlServer;
pub use crate::stage::{ELECTION, HANG, Witness, brief, calm, lead, renewals, soon, stand, start};

/// What a person is told, who knows how to ask.
pub async fn ask<S: SqlServer>(server: &S, sql: &str) -> String {
    soon(server.ask(sql)).await.unwrap_or_else(|said| panic!("{sql}: {said}"))
}

/// Waits until a person is told that there is one, or are more.
pub async fn until<S: SqlServer>(server: &S, sql: &str) {
    soon(async {
        while matches!(ask(server, sql).await.as_str(), "" | "0" | "f") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// The server's store.
pub async fn connect<S: SqlServer>(server: &S) -> Result<Arc<dyn Store>, StoreError> {
    soon(S::connect(StoreUrl::parse(&server.url()).unwrap())).await
}

/// The election of this name.
pub fn name(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

/// Opens session `number`, of node `n<number>`.
pub async fn open(store: &Arc<dyn Store>, number: u128) -> SessionId {
    let session = SessionId::from_u128(number);
    let node = NodeInfo::new(NodeId::new(format!("n{number}")).unwrap(), "host");
    let ttl = Duration::from_secs(10);
    soon(store.open(Open { session, sequence: 1, ttl, node, supersedes: None, over: None })).await.unwrap();
    session
}

/// A claim of the one election.
pub fn claiming(session: SessionId) -> Claim {
    Claim::plain(session, name(ELECTION), 1)
}

/// Claims an election that is free.
pub async fn win(store: &Arc<dyn Store>, session: SessionId) -> Term {
    match soon(store.claim(claiming(session))).await.unwrap().value {
        Standing::Leading { term } => term,
        other => panic!("not granted: {other:?}"),
    }
}

/// That a person must act, in which words?
pub fn misconfigured<T: std::fmt::Debug>(reply: Result<T, StoreError>) -> String {
    match reply {
        Err(error @ StoreError::Misconfigured(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}
