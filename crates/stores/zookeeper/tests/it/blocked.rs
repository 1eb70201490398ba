//! Requests that are not answered hold up no renewal.
//!
//! The servers lock nothing on behalf of a client, and answer the requests of a connection in the order in which they
//! came. So nothing holds up a request but its server and the way there. The store's own connection carries no renewal.
//! The connection of a session carries its renewals behind other requests; if that connection hangs, the second try of a
//! renewal uses a fresh one.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{claiming, connect, name, open_for, ticking, win};
use tenure_core::{SessionId, TaskListName, Term};
use tenure_store::{
    Arrangement, Cause, Claim, Declaration, Enlistment, EventQuery, HealthReport, Lease, LedgerQuery,
    Problem, Publication, Release, Resign, Store, StoreError,
};
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, soon, until};
use tenure_zookeeper::ZooKeeperStore;

/// No session lapses, and none of its connections is given up for being silent.
const LONG: Duration = Duration::from_secs(3_600);

type Verb =
    fn(Arc<ZooKeeperStore>, SessionId) -> Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

macro_rules! verbs {
    ($list:ident: $($verb:ident => |$store:ident, $session:ident| $request:expr;)+) => {
        const $list: &[(&str, Verb)] = &[$((stringify!($verb), |$store, $session| {
            Box::pin(async move { $request.await.map(|_| ()) })
        })),+];
    };
}

verbs! { OVER_THE_STORES_CONNECTION:
    declare => |store, session| store.declare(Declaration {
        lease: lease(session), degraded: true, live: 1, minimum: 2,
    });
    petition => |store, _session| store.petition(name(ELECTION), None);
    delete => |store, _session| store.delete(name(ELECTION), false);
    purge => |store, _session| store.purge(Duration::from_secs(86_400));
    read => |store, _session| store.read(name(ELECTION));
    candidates => |store, _session| store.candidates(name(ELECTION));
    elections => |store, _session| store.elections();
    nodes => |store, _session| store.nodes();
    events => |store, _session| store.events(EventQuery::default());
    examine => |store, _session| store.examine();
    survey => |store, _session| store.ledger().unwrap().survey(name(ELECTION));
    leaf => |store, session| store.ledger().unwrap().leaf(LedgerQuery {
        election: name(ELECTION), since: 0, of: Some(session),
    });
    arrange => |store, _session| store.ledger().unwrap().arrange(Arrangement {
        election: name(ELECTION),
        list: TaskListName::new("orders/bills").unwrap(),
        seen: 0,
        document: Some(String::from("words")),
    });
}

verbs! { OVER_THE_SESSIONS_CONNECTION:
    claim => |store, session| store.claim(Claim { attempt: 2, ..claiming(session) });
    resign => |store, session| store.resign(Resign {
        session, election: name(ELECTION), attempt: 1, term: Some(Term::new(99)), to: None,
        cause: Cause::Resigned,
    });
    report_health => |store, session| store.report_health(HealthReport {
        session, number: 1, problem: Some(Problem::new("no disk")),
    });
    publish => |store, session| store.ledger().unwrap().publish(Publication {
        lease: lease(session), after: 0, retire: Vec::new(), changes: Vec::new(),
    });
    acknowledge => |store, session| store.ledger().unwrap().acknowledge(Release {
        election: name(ELECTION), session, released: Vec::new(),
    });
    enlist => |store, session| store.ledger().unwrap().enlist(Enlistment {
        election: name(ELECTION), session, document: String::from("words"),
    });
}

fn lease(session: SessionId) -> Lease {
    Lease { election: name(ELECTION), session, term: Term::new(1) }
}

/// A leader behind a proxy.
async fn leader() -> (ZooKeeper, Proxy, Arc<ZooKeeperStore>, SessionId) {
    let server = ZooKeeper::start();
    let proxy = Proxy::before(server.port(0));
    let store = Arc::new(connect(&ticking(&server.url_by(proxy.port()))).await.unwrap());
    let session = open_for(&store, 1, LONG).await;
    assert_eq!(win(&store, session).await, Term::new(1));
    (server, proxy, store, session)
}

/// Holds the connection over which the verb says one of these words, that request included.
async fn held(
    proxy: &Proxy,
    words: &'static [&'static str],
    calling: impl Future<Output = Result<(), StoreError>> + Send + 'static,
) -> tokio::task::JoinHandle<Result<(), StoreError>> {
    let says = |said: &[u8], word: &str| said.windows(word.len()).any(|window| window == word.as_bytes());
    proxy.hold_at(move |said| words.iter().any(|word| says(said, word)));
    let calling = tokio::spawn(calling);
    until(async || proxy.has_held()).await;
    calling
}

#[tokio::test]
async fn a_request_over_the_stores_own_connection_holds_up_no_renewal() {
    let (_server, proxy, store, session) = leader().await;
    let mut sequence = 1;
    for &(verb, call) in OVER_THE_STORES_CONNECTION {
        soon(async {
            loop {
                // Every one begins with a read barrier.
                let calling = held(&proxy, &["/.identity"], call(Arc::clone(&store), session)).await;
                sequence += 1;
                let renewed = store.renew(session, sequence, 1).await;
                let still = !calling.is_finished();
                proxy.release();
                let _ = calling.await.unwrap();
                assert!(renewed.is_ok(), "`{verb}` holds up a renewal: {renewed:?}");
                // Otherwise the connection was given up before the renewal was answered.
                if still {
                    return;
                }
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_request_over_the_sessions_own_connection_does_not_hold_up_the_second_try_of_a_renewal() {
    let (_server, proxy, store, session) = leader().await;
    for (&(verb, call), sequence) in OVER_THE_SESSIONS_CONNECTION.iter().zip(2..) {
        let words = &["/.identity", "/reports", "/nodes/n1"];
        let calling = held(&proxy, words, call(Arc::clone(&store), session)).await;
        let renewed = soon(store.renew(session, sequence, 2)).await;
        assert!(renewed.is_ok(), "`{verb}` holds up a renewal: {renewed:?}");
        let answered = soon(calling).await.unwrap();
        assert!(answered.is_err(), "`{verb}` was held, and its connection has ended");
        proxy.release();
    }
}
