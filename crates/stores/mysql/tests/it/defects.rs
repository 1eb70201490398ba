//! What the designs that Tenure grew from get wrong, and cannot happen here. The numbers are those of the list of
//! their defects; the other tests of this store that show one say so.

use std::time::Duration;

use crate::common::Place;
use tenure::{Node, Reason, Term};
use tenure_core::Standing;
use tenure_store::{Claim, StoreError, clock};
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::MariaDb;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{
    ELECTION, ask, brief, calm, claiming, connect, lead, name, open, renewals, soon, stand, start, win,
};

/// Defect 1: `NOW() + 10` is decimal arithmetic, and at second 50 or later no time at all. Here expiry is an interval:
/// right at every second of a minute.
#[tokio::test]
async fn an_expiry_is_a_time_at_every_second_of_the_minute() {
    let place = Place(MariaDb::start_with_a_clock(&["sql-mode="], 0));
    let store = connect(&place).await.unwrap();
    let session = open(&store, 1).await;
    win(&store, session).await;
    let now = i64::try_from(clock::wall().as_secs() % 60).unwrap();
    for (sequence, second) in (2..).zip([0, 49, 50, 55, 59]) {
        place.0.set_clock(second - now);
        soon(store.renew(session, sequence, 1)).await.unwrap();
        let left = "SELECT TIMESTAMPDIFF(MICROSECOND, renewed_at, expires_at) FROM {t}leases";
        assert_eq!(ask(&place, left).await, "10000000", "at second {second}");
    }
}

/// Defect 2: assignments of one statement see each other's results, left to right. Here a rival's claim changes nothing of
/// the holder's, however often it comes.
#[tokio::test]
async fn a_refused_claim_extends_nobodys_lease() {
    let place = Place::start();
    let store = connect(&place).await.unwrap();
    let (holder, rival) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, holder).await;
    let row = "SELECT CONCAT_WS(' ', e.session, e.term, e.attempt, s.sequence, s.renewed_at)
               FROM {t}elections e JOIN {t}sessions s ON s.id = e.session";
    let before = ask(&place, row).await;
    for attempt in 1..5 {
        let claim = Claim::plain(rival, name(ELECTION), attempt);
        let standing = soon(store.claim(claim)).await.unwrap().value;
        assert!(matches!(standing, Standing::Waiting { .. }), "{standing:?}");
    }
    assert_eq!(ask(&place, row).await, before);
}

/// Defect 3 (see also `settings.rs`): a renewal that is repeated within the same instant changes no row, and costs
/// nobody a lease.
#[tokio::test]
async fn a_renewal_that_changes_nothing_is_no_loss() {
    let place = Place::start();
    let store = connect(&place).await.unwrap();
    let session = open(&store, 1).await;
    win(&store, session).await;
    for _ in 0..20 {
        soon(store.renew(session, 2, 1)).await.unwrap();
    }
    assert_eq!(win(&store, session).await, Term::new(1));
}

/// Defect 4: a lease that lapsed and was taken over is not revived by its old holder's renewal.
#[tokio::test]
async fn a_renewal_does_not_revive_a_lease_that_was_taken_over() {
    let place = Place::start();
    let store = connect(&place).await.unwrap();
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, first).await;
    let over = Some(tenure_core::Stamp { session: first, sequence: 1 });
    let granted = soon(store.claim(Claim { over, ..claiming(second) })).await.unwrap().value;
    assert_eq!(granted, Standing::Leading { term: Term::new(2) });
    let late = soon(store.renew(first, 2, 1)).await;
    assert!(matches!(late, Err(StoreError::SessionLost)), "{late:?}");
    let gap = "SELECT COUNT(*) FROM {t}events WHERE kind = 'leader_lost' AND JSON_EXTRACT(data, '$.silent_ms') >= 0";
    assert_eq!(ask(&place, gap).await, "1", "and the gap is on record");
}

/// Defect 5: a renewal that hangs in TCP. The leader ends by its own clock; how, and that nobody else leads
/// meanwhile, is in the faults that every SQL store is shown (`scenarios.rs`).
#[tokio::test]
async fn a_leader_whose_renewal_hangs_ends_by_its_own_clock() {
    let place = Place::start();
    let proxy = Proxy::before(place.port());
    let node = start(brief("a"), &place.url_by(proxy.port())).await;
    let leadership = lead(&node).await;
    let due = node.held().now().until;
    proxy.hold();
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due && leadership.check().is_err());
}

/// Defect 6: two processes with one configured id do not share a lease, a term fences, and a resignation frees.
#[tokio::test]
async fn a_second_process_of_the_same_name_is_refused() {
    let place = Place::start();
    let node = start(calm("a"), &place.url()).await;
    let leadership = lead(&node).await;
    let twin = soon(
        Node::builder("a")
            .ttl(Duration::from_secs(30))
            .start(soon(tenure::connect(place.url())).await.unwrap()),
    );
    let refused = twin.await.err().unwrap().to_string();
    assert!(refused.contains("`a`"), "{refused}");
    assert_eq!(leadership.check(), Ok(Term::new(1)));
    soon(leadership.resign()).await.unwrap();
    assert_eq!(lead(&node).await.term(), Term::new(2));
}

/// Defect 7: a successor does not wait for a poll on top of the ttl, and after a resignation for neither.
#[tokio::test]
async fn a_hand_over_waits_for_no_poll() {
    let place = Place::start();
    // Neither is waited for by any test.
    let node = |id: &str| calm(id).ttl(Duration::from_secs(7200)).poll_every(Duration::from_secs(3600));
    let (a, b) = (start(node("a"), &place.url()).await, start(node("b"), &place.url()).await);
    let first = lead(&a).await;
    let successor = stand(&b);
    tenure_testkit::sql::stage::until(&place, "SELECT COUNT(*) FROM {t}candidates").await;
    renewals(&b, 2).await;
    soon(first.resign()).await.unwrap();
    soon(successor).await.unwrap();
}

/// Defects 8 and 10: no challenger steals a live lease, whatever it says of itself; the term is raised by grants
/// alone, and never by a renewal.
#[tokio::test]
async fn nothing_that_a_challenger_says_steals_a_live_lease_and_no_renewal_raises_a_term() {
    let place = Place::start();
    let store = connect(&place).await.unwrap();
    let (holder, rival) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, holder).await;
    for sequence in 2..6 {
        soon(store.renew(holder, sequence, 1)).await.unwrap();
    }
    assert_eq!(ask(&place, "SELECT term FROM {t}elections").await, "1");
    let stale = Some(tenure_core::Stamp { session: holder, sequence: 1 });
    let claims = [
        Claim { priority: 99, ..claiming(rival) },
        Claim { above: Term::new(57), ..claiming(rival) },
        Claim { over: stale, ..claiming(rival) },
    ];
    for claim in claims {
        let standing = soon(store.claim(claim)).await.unwrap().value;
        assert!(matches!(standing, Standing::Waiting { .. }), "{standing:?}");
    }
    assert_eq!(win(&store, holder).await, Term::new(1), "it leads as before");
}

/// Defect 11: there is one row per election, whatever became of it, so no term starts again beside it.
#[tokio::test]
async fn an_election_that_ended_and_began_again_goes_on_with_its_terms() {
    let place = Place::start();
    let node = start(calm("a"), &place.url()).await;
    for term in [1, 3, 5] {
        let leadership = lead(&node).await;
        assert_eq!(leadership.term(), Term::new(term));
        soon(leadership.resign()).await.unwrap();
        drop(leadership);
        soon(node.election(ELECTION).unwrap().delete()).await.unwrap();
        assert_eq!(ask(&place, "SELECT COUNT(*) FROM {t}elections").await, "1");
    }
}

/// Defect 12: a time-out that only reads obey. Here a write that finds its row locked is refused within bounds,
/// and nothing of it is carried out later.
#[tokio::test]
async fn a_write_does_not_wait_for_a_lock_for_ever() {
    let place = Place::start();
    let store = connect(&place).await.unwrap();
    let session = open(&store, 1).await;
    let lock = place.lock_sessions().await;
    let refused = soon(store.renew(session, 7, 1)).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    // Given up half-way, it does not wait any longer than that either.
    tokio::select! {
        answer = store.renew(session, 8, 1) => panic!("{answer:?}"),
        () = tenure_testkit::sql::stage::until(&place, WAITS) => {}
    }
    let ended = WAITS.replace("COUNT(*)", "COUNT(*) = 0");
    tenure_testkit::sql::stage::until(&place, &ended).await;
    drop(lock);
    let renewed = soon(async {
        loop {
            if let Ok(renewed) = store.renew(session, 9, 2).await {
                return renewed;
            }
        }
    });
    assert_eq!(renewed.await.value.previous, 1, "neither 7 nor 8 was written");
}

const WAITS: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST
    WHERE ID <> CONNECTION_ID() AND COMMAND = 'Query' AND INFO LIKE '%tenure_sessions s%FOR UPDATE%'";
