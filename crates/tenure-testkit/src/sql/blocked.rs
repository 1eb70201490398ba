//! Locks that outlast a request: whose request waits for them, and whose does not.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure::Term;
use tenure_core::{Opening, SessionId, Stamp, Standing, TaskListName};
use tenure_store::{
    Arrangement, Cause, Claim, Declaration, Enlistment, EventKind, EventQuery, HealthReport, Lease,
    LedgerQuery, NodeInfo, Open, Problem, Publication, Release, Resign, Store, StoreError,
};

use super::SqlServer;
use super::stage::{
    ELECTION, ask, brief, calm, claiming, connect, lead, name, open, soon, stand, start, win,
};
use crate::proxy::Proxy;

/// Whether the store has answered.
type Calling = Pin<Box<dyn Future<Output = bool> + Send>>;
type Verb = fn(Arc<dyn Store>, SessionId) -> Calling;

macro_rules! verbs {
    ($($verb:ident => |$store:ident, $session:ident| $request:expr;)+) => {
        /// Every verb that a node may ask for while its session is to be renewed, in the name of a session that leads.
        const VERBS: &[(&str, Verb)] = &[$((stringify!($verb), |$store, $session| Box::pin(async move {
            // It may have waited in vain, or its connection was lost with a request that had.
            !matches!($request.await, Err(StoreError::Unavailable(_) | StoreError::Indeterminate(_)))
        }))),+];
    };
}

verbs! {
    claim => |store, session| store.claim(Claim { attempt: 2, ..claiming(session) });
    claim_over => |store, session| store.claim(Claim { attempt: 2, over: Some(silent()), ..claiming(session) });
    claim_elsewhere => |store, session| store.claim(Claim::plain(session, name("elsewhere"), 2));
    resign => |store, session| store.resign(Resign {
        session, election: name(ELECTION), attempt: 1, term: Some(Term::new(99)), to: None,
        cause: Cause::Resigned,
    });
    declare => |store, session| store.declare(Declaration {
        lease: lease(session), degraded: true, live: 1, minimum: 2,
    });
    report_health => |store, session| store.report_health(HealthReport {
        session, number: 1, problem: Some(Problem::new("no disk")),
    });
    petition => |store, _session| store.petition(name(ELECTION), None);
    delete => |store, _session| store.delete(name(ELECTION), false);
    retire => |store, _session| store.retire(silent());
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
    publish => |store, session| store.ledger().unwrap().publish(Publication {
        lease: lease(session), after: 0, retire: vec![silent()], changes: Vec::new(),
    });
    acknowledge => |store, session| store.ledger().unwrap().acknowledge(Release {
        election: name(ELECTION), session, released: Vec::new(),
    });
    enlist => |store, session| store.ledger().unwrap().enlist(Enlistment {
        election: name(ELECTION), session, document: String::from("again"),
    });
    arrange => |store, _session| store.ledger().unwrap().arrange(arrangement(99));
}

fn lease(session: SessionId) -> Lease {
    Lease { election: name(ELECTION), session, term: Term::new(1) }
}

/// Of a session that was never opened.
fn silent() -> Stamp {
    Stamp { session: SessionId::from_u128(99), sequence: 1 }
}

fn arrangement(seen: u64) -> Arrangement {
    let list = TaskListName::new("orders/bills").unwrap();
    Arrangement { election: name(ELECTION), list, seen, document: Some(String::from("words")) }
}

/// A verb that waits for the row of an election or of a ledger, which the application's own transaction may hold for
/// as long as it likes, holds nothing that the renewal of its own session needs.
pub async fn no_verb_that_waits_for_a_lock_holds_up_the_renewal_of_its_session<S: SqlServer>() {
    let server = S::start();
    let store = connect(&server).await.unwrap();
    let session = open(&store, 1).await;
    assert_eq!(win(&store, session).await, Term::new(1));
    soon(store.ledger().unwrap().arrange(arrangement(0))).await.unwrap();
    let mut waited = Vec::new();
    for table in ["elections", "ledgers"] {
        for &(verb, call) in VERBS {
            let beside = async {
                loop {
                    if let Some(waits) = renewed_beside(&server, &store, session, (table, verb), call).await {
                        return waits;
                    }
                }
            };
            if soon(beside).await {
                waited.push((table, verb));
            }
        }
    }
    for one in
        [("elections", "claim"), ("elections", "publish"), ("ledgers", "publish"), ("ledgers", "acknowledge")]
    {
        assert!(waited.contains(&one), "{one:?} was to wait: {waited:?}");
    }
}

/// Renews the session while a verb waits for that table: whether it waited at all, if it did all the time.
async fn renewed_beside<S: SqlServer>(
    server: &S,
    store: &Arc<dyn Store>,
    session: SessionId,
    (table, verb): (&str, &str),
    call: Verb,
) -> Option<bool> {
    let lock = server.lock_rows(table).await;
    let calling = tokio::spawn(call(Arc::clone(store), session));
    let waits = loop {
        if calling.is_finished() || !server.waiting().await.is_empty() {
            break !calling.is_finished();
        }
    };
    let renewed = store.renew(session, 2, 1).await;
    let still = !calling.is_finished();
    drop(lock);
    let answered = calling.await.unwrap();
    assert!(renewed.is_ok(), "`{verb}`, which waits for {table}, holds up a renewal: {renewed:?}");
    // One that was given up meanwhile has shown nothing, nor has one that never reached the store. A renewal that is
    // answered only when the verb was given up never counts, so the test does not end.
    (still == waits && (waits || answered)).then_some(waits)
}

/// Whoever reads the history shares a connection with other readers only.
pub async fn no_reader_of_the_history_holds_up_a_renewal_or_a_claim<S: SqlServer>() {
    let server = S::start();
    let store = connect(&server).await.unwrap();
    let session = open(&store, 1).await;
    assert_eq!(win(&store, session).await, Term::new(1));
    let mut sequence = 1;
    soon(async {
        loop {
            let lock = server.lock_table("events").await;
            let reads = (0..8).map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move { store.events(EventQuery::default()).await })
            });
            let reads: Vec<_> = reads.collect();
            let reading = |asked: &String| asked.contains("list_events") || asked.contains("v.sequence");
            while !server.waiting().await.iter().any(reading) && !reads[0].is_finished() {}
            sequence += 1;
            store.renew(session, sequence, 1).await.unwrap();
            assert_eq!(win(&store, session).await, Term::new(1));
            let still = reads.iter().all(|read| !read.is_finished());
            drop(lock);
            for read in reads {
                let _ = read.await.unwrap();
            }
            // Otherwise they were given up before the others were answered.
            if still {
                return;
            }
        }
    })
    .await;
}

/// As a process that is stopped between two statements (SIGSTOP, a paused machine): its connection stays open, and it
/// says nothing. Its lease's row stays locked until the server ends the transaction, which it does when the lease is over.
pub async fn a_leader_that_is_stopped_inside_a_fenced_transaction_is_succeeded<S: SqlServer>() {
    let server = S::start();
    let proxy = Proxy::before(server.port());
    let far = start(brief("far"), &server.url_by(proxy.port())).await;
    let near = start(calm("near"), &server.url()).await;
    let other = soon(near.election("other").unwrap().elected()).await.unwrap();
    let first = lead(&far).await;
    ask(&server, "CREATE TABLE ledger (entry VARCHAR(100))").await;
    let began = Arc::new(AtomicBool::new(false));
    let work = tokio::spawn({
        let (began, first) = (Arc::clone(&began), first.clone());
        async move {
            let stops = async {
                began.store(true, Ordering::Release);
                pending().await
            };
            S::fenced(&first, "INSERT INTO ledger VALUES ('an entry')", stops).await
        }
    });
    soon(async {
        while !began.load(Ordering::Acquire) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    proxy.drop_everything();
    let second = soon(stand(&near)).await.unwrap();
    assert_eq!(second.term(), Term::new(2));
    assert_eq!(ask(&server, "SELECT COUNT(*) FROM ledger").await, "0", "what it wrote is undone");
    assert_eq!(other.check(), Ok(Term::new(1)), "and nobody has lost another election over it");
    work.abort();
}

/// A session that has lapsed is retired whoever has locked its elections. They are granted when they are not locked any
/// more, and the loss is told then.
pub async fn a_lapsed_session_is_retired_while_its_lease_is_locked<S: SqlServer>() {
    let server = S::start();
    let store = connect(&server).await.unwrap();
    let (first, rival) = (open(&store, 1).await, open(&store, 2).await);
    assert_eq!(win(&store, first).await, Term::new(1));
    let lapsed = Stamp { session: first, sequence: 1 };
    let lock = server.lock_rows("elections").await;
    assert!(soon(store.retire(lapsed)).await.unwrap().value, "it is retired");
    let refused = soon(store.claim(claiming(rival))).await;
    assert!(refused.is_err(), "the lease is locked: {refused:?}");
    let node = NodeInfo::new(tenure_core::NodeId::new("n1").unwrap(), "host");
    let (session, ttl) = (SessionId::from_u128(3), Duration::from_secs(10));
    let again = Open { session, sequence: 1, ttl, node, supersedes: Some(first), over: None };
    let opened = soon(store.open(again)).await.unwrap().value;
    assert!(matches!(opened, Opening::Opened { .. }), "its node is back: {opened:?}");
    drop(lock);
    let granted = soon(async {
        loop {
            // The lock goes with its connection, which may take a moment.
            if let Ok(told) = store.claim(Claim { attempt: 2, ..claiming(rival) }).await {
                return told.value;
            }
        }
    })
    .await;
    assert_eq!(granted, Standing::Leading { term: Term::new(2) });
    let query = EventQuery { election: Some(name(ELECTION)), ..EventQuery::default() };
    let told = soon(store.events(query)).await.unwrap().value;
    let kinds: Vec<_> = told.iter().map(|event| (event.sequence, event.kind, event.term.number())).collect();
    let expected = [
        (1, EventKind::ElectionStarted, 0),
        (2, EventKind::LeaderElected, 1),
        (3, EventKind::LeaderLost, 1),
        (4, EventKind::LeaderElected, 2),
        (5, EventKind::LeaderChanged, 2),
    ];
    assert_eq!(kinds, expected);
    assert!(told[2].data.contains("lapsed") && told[2].data.contains("silent_ms"), "{}", told[2].data);
}
