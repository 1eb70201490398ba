//! What the tests of this store share: nodes on a real server, a person with psql, and waits that cannot
//! hang.
#![allow(dead_code, reason = "every test file uses its own part of it")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tenure::{Leadership, Node, NodeBuilder};
use tenure_core::{ElectionName, NodeId, SessionId, Standing, Term};
use tenure_postgres::PostgresStore;
use tenure_store::{Claim, NodeInfo, Open, Store, StoreError, StoreUrl, clock};
use tenure_testkit::checker;
use tokio_postgres::{Client, NoTls};

/// Longer than anything here takes, on any machine: reached only when something hangs.
pub const HANG: Duration = Duration::from_secs(60);
/// The one election of most tests.
pub const ELECTION: &str = "reports";

/// Waits, but not forever.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("this takes too long: something hangs")
}

/// A node for tests in which nothing is to lapse, though much happens to its connections.
pub fn calm(id: &str) -> NodeBuilder {
    Node::builder(id).ttl(Duration::from_secs(30)).renew_every(Duration::from_millis(500))
}

/// A node for tests in which something is to lapse.
pub fn brief(id: &str) -> NodeBuilder {
    Node::builder(id).ttl(Duration::from_secs(2))
}

pub async fn start(builder: NodeBuilder, url: &str) -> Node {
    let store = soon(tenure::connect(url)).await.unwrap();
    soon(builder.start(store)).await.unwrap()
}

/// Stands until elected.
pub async fn lead(node: &Node) -> Leadership {
    soon(node.election(ELECTION).unwrap().elected()).await.unwrap()
}

/// Stands in the background.
pub fn stand(node: &Node) -> tokio::task::JoinHandle<Leadership> {
    let election = node.election(ELECTION).unwrap();
    tokio::spawn(async move { election.elected().await.unwrap() })
}

/// Waits until the node has renewed its session so many times more.
pub async fn renewals(node: &Node, count: u32) {
    let mut held = node.held();
    let mut until = held.now().until;
    for _ in 0..count {
        while held.now().until <= until {
            soon(held.changed()).await.expect("the node is alive");
        }
        until = held.now().until;
    }
}

/// A person's connection, as with psql.
pub async fn by_hand(url: &str) -> Client {
    try_by_hand(url).await.unwrap()
}

pub async fn try_by_hand(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// What a query gives, in its first column of its first row.
pub async fn ask<T: for<'a> tokio_postgres::types::FromSql<'a>>(person: &Client, sql: &str) -> T {
    soon(person.query_one(sql, &[])).await.unwrap().get(0)
}

/// Waits until a query says yes.
pub async fn until(person: &Client, sql: &str) {
    soon(async {
        while !ask::<bool>(person, sql).await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Does it, and has it refused: with which words?
pub async fn refused(person: &Client, sql: &str) -> String {
    let error = soon(person.batch_execute(sql)).await.expect_err(sql);
    error.as_db_error().expect(sql).message().to_owned()
}

pub async fn connect(url: &str) -> Result<PostgresStore, StoreError> {
    soon(PostgresStore::connect(&StoreUrl::parse(url).unwrap())).await
}

pub fn name(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

/// Opens session `number`, of node `n<number>`.
pub async fn open(store: &PostgresStore, number: u128) -> SessionId {
    let session = SessionId::from_u128(number);
    let node = NodeInfo {
        id: NodeId::new(format!("n{number}")).unwrap(),
        hostname: String::from("host"),
        address: None,
        pid: 7,
    };
    let ttl = Duration::from_secs(10);
    soon(store.open(Open { session, sequence: 1, ttl, node, supersedes: None, over: None })).await.unwrap();
    session
}

pub fn claiming(session: SessionId) -> Claim {
    Claim::plain(session, name(ELECTION), 1)
}

/// Claims an election that is free.
pub async fn win(store: &PostgresStore, session: SessionId) -> Term {
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

/// Watches a leadership on a thread of its own, and tells when its check has passed.
pub struct Witness {
    over: Arc<AtomicBool>,
    watch: JoinHandle<checker::Leadership>,
}

impl Witness {
    pub fn of(node: &Node, leadership: &Leadership) -> Self {
        let (name, leadership) = (node.id().to_string(), leadership.clone());
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let watch = std::thread::spawn(move || {
            let mut seen: Option<(u64, u64)> = None;
            loop {
                // It passed at some instant between these two: what is told is never too long.
                let before = clock::now().as_nanos();
                if leadership.check().is_err() {
                    break;
                }
                let after = clock::now().as_nanos();
                let from = seen.map_or(after, |(from, _)| from);
                seen = Some((from, before.max(from)));
                if told.load(Ordering::Acquire) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let (from, until) = seen.expect("it led when the watch began");
            checker::Leadership {
                election: leadership.election().to_string(),
                node: name,
                pid: std::process::id(),
                term: leadership.term().number(),
                from,
                until,
            }
        });
        Self { over, watch }
    }

    /// Ends the watch, if the leadership has not.
    pub fn tell(self) -> checker::Leadership {
        self.over.store(true, Ordering::Release);
        self.watch.join().unwrap()
    }
}
