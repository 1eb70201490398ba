//! Requests that are not answered hold up no renewal: each has a TCP connection to itself while it is under way.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionName, SessionId, Stamp, TaskListName, Term};
use tenure_raft::RaftStore;
use tenure_store::{
    Arrangement, Cause, Claim, Declaration, Enlistment, EventQuery, HealthReport, Lease, LedgerQuery,
    Problem, Publication, Release, Resign, Store, StoreError,
};
use tenure_testkit::proxy::Proxy;
use tenure_testkit::stage::{soon, until};

use crate::kit::{addresses, client_url, connect, directory, member_url, open, patiently};

type Verb = fn(Arc<RaftStore>, SessionId) -> Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

macro_rules! verbs {
    ($($verb:ident => |$store:ident, $session:ident| $request:expr;)+) => {
        const VERBS: &[(&str, Verb)] = &[$((stringify!($verb), |$store, $session| {
            Box::pin(async move { $request.await.map(|_| ()) })
        })),+];
    };
}

verbs! {
    claim => |store, session| store.claim(Claim::plain(session, election(), 2));
    resign => |store, session| store.resign(Resign {
        session, election: election(), attempt: 1, term: Some(Term::new(99)), to: None,
        cause: Cause::Resigned,
    });
    declare => |store, session| store.declare(Declaration {
        lease: lease(session), degraded: true, live: 1, minimum: 2,
    });
    report_health => |store, session| store.report_health(HealthReport {
        session, number: 1, problem: Some(Problem::new("no disk")),
    });
    petition => |store, _session| store.petition(election(), None);
    delete => |store, _session| store.delete(election(), false);
    retire => |store, _session| store.retire(Stamp { session: SessionId::from_u128(99), sequence: 1 });
    purge => |store, _session| store.purge(Duration::from_secs(86_400));
    read => |store, _session| store.read(election());
    candidates => |store, _session| store.candidates(election());
    elections => |store, _session| store.elections();
    nodes => |store, _session| store.nodes();
    events => |store, _session| store.events(EventQuery::default());
    examine => |store, _session| store.examine();
    survey => |store, _session| store.ledger().unwrap().survey(election());
    leaf => |store, session| store.ledger().unwrap().leaf(LedgerQuery {
        election: election(), since: 0, of: Some(session),
    });
    publish => |store, session| store.ledger().unwrap().publish(Publication {
        lease: lease(session), after: 0, retire: Vec::new(), changes: Vec::new(),
    });
    acknowledge => |store, session| store.ledger().unwrap().acknowledge(Release {
        election: election(), session, released: Vec::new(),
    });
    enlist => |store, session| store.ledger().unwrap().enlist(Enlistment {
        election: election(), session, document: String::from("words"),
    });
    arrange => |store, _session| store.ledger().unwrap().arrange(Arrangement {
        election: election(),
        list: TaskListName::new("orders/bills").unwrap(),
        seen: 0,
        document: Some(String::from("words")),
    });
}

fn election() -> ElectionName {
    ElectionName::new("reports").unwrap()
}

fn lease(session: SessionId) -> Lease {
    Lease { election: election(), session, term: Term::new(1) }
}

#[tokio::test]
async fn no_request_that_is_not_answered_holds_up_the_renewal_of_its_session() {
    let (peers, directory) = (addresses(1), directory());
    let _member = connect(&member_url(&peers, directory.path(), &peers[0])).await;
    let port = peers[0].rsplit(':').next().unwrap().parse().unwrap();
    let proxy = Proxy::before(port);
    let store = Arc::new(connect(&client_url(&[format!("127.0.0.1:{}", proxy.port())])).await);
    let session = open(&store, "a").await;
    patiently(async || store.claim(Claim::plain(session, election(), 1)).await).await;
    let mut sequence = 1;
    for &(verb, call) in VERBS {
        soon(async {
            loop {
                proxy.hold_at(|_| true);
                let calling = tokio::spawn(call(Arc::clone(&store), session));
                until(async || proxy.has_held()).await;
                sequence += 1;
                let renewed = store.renew(session, sequence, 1).await;
                let still = !calling.is_finished();
                proxy.release();
                let _ = calling.await.unwrap();
                assert!(renewed.is_ok(), "`{verb}` holds up a renewal: {renewed:?}");
                // Otherwise another connection was held, such as that for news, or the request was given up before the
                // renewal was answered.
                if still {
                    return;
                }
            }
        })
        .await;
    }
}
