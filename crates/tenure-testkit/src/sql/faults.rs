//! What becomes of leaders when the server, or the way to it, fails.

use std::time::Duration;

use tenure::{NodeEvent, Reason, Term};
use tenure_core::Standing;
use tenure_store::{StoreError, clock};

use super::SqlServer;
use super::stage::{
    ask, brief, calm, claiming, connect, lead, open, renewals, soon, stand, start, until, win,
};
use crate::cut::a_leader_that_is_cut_off_is_succeeded;
use crate::proxy::Proxy;

pub async fn a_leader_whose_every_connection_is_ended_once_a_second_keeps_its_term<S: SqlServer>() {
    let server = S::start();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    for _ in 0..5 {
        assert!(server.end_connections().await > 0, "there was something to end");
        renewals(&node, 2).await;
    }
    renewals(&node, 2).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
}

/// What waits for a lock is refused after a second, and asked again.
pub async fn a_lock_that_outlasts_several_requests_costs_no_leader_its_term<S: SqlServer>() {
    let server = S::start();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let mut events = node.subscribe();
    let lock = server.lock_sessions().await;
    // A renewal has failed: so nothing is under way any more that was sent before the lock.
    while !matches!(soon(events.next()).await, Some(NodeEvent::InJeopardy { .. })) {}
    let due = node.held().now().until;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(node.held().now().until, due, "no renewal gets past the lock");
    drop(lock);
    renewals(&node, 2).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
}

/// The server may have committed before it noticed that it was to end, so that is no refusal.
pub async fn a_request_over_which_the_server_ends_the_connection_is_indeterminate<S: SqlServer>() {
    let server = S::start();
    let store = connect(&server).await.unwrap();
    let session = open(&store, 1).await;
    let lock = server.lock_sessions().await;
    let renewal = tokio::spawn(async move {
        let outcome = store.renew(session, 2, 1).await;
        (store, outcome)
    });
    soon(async { while !server.end_whoever_waits().await {} }).await;
    let (store, outcome) = soon(renewal).await.unwrap();
    assert!(matches!(outcome, Err(StoreError::Indeterminate(_))), "{outcome:?}");
    drop(lock);
    let renewed = soon(async {
        loop {
            // Until the lock is gone, it may be refused.
            if let Ok(renewed) = store.renew(session, 3, 2).await {
                return renewed;
            }
        }
    });
    assert_eq!(renewed.await.value.previous, 1, "the store is usable");
}

pub async fn a_server_that_is_restarted_within_the_lease_changes_no_leader<S: SqlServer>() {
    let mut server = S::start();
    let (a, b) = (start(calm("a"), &server.url()).await, start(calm("b"), &server.url()).await);
    let leadership = lead(&a).await;
    let successor = stand(&b);
    for _ in 0..2 {
        server.stop();
        server.launch();
        renewals(&a, 2).await;
        renewals(&b, 2).await;
        assert_eq!(leadership.check(), Ok(Term::new(1)));
        assert!(!successor.is_finished());
    }
    soon(leadership.resign()).await.unwrap();
    assert_eq!(soon(successor).await.unwrap().term(), Term::new(2), "and b still stands");
}

/// What was told is on disk: so neither a term nor a holder is forgotten.
pub async fn a_server_that_is_killed_and_launched_again_goes_on_with_rising_terms<S: SqlServer>() {
    let mut server = S::start_durable();
    let node = start(calm("a"), &server.url()).await;
    for term in 1..=3 {
        let leadership = lead(&node).await;
        server.kill();
        server.launch();
        renewals(&node, 1).await;
        assert_eq!(leadership.check(), Ok(Term::new(term)));
        assert_eq!(ask(&server, "SELECT term FROM {t}elections").await, term.to_string());
        soon(leadership.resign()).await.unwrap();
    }
}

/// Only a person can end it, and until then the leader may do what its lease allows.
pub async fn on_a_server_that_has_become_read_only_a_leader_carries_on_to_its_deadline<S: SqlServer>() {
    let server = S::start();
    let node = start(brief("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let due = node.held().now().until;
    server.set_read_only(true).await;
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    let problem = connect(&server).await.err().unwrap();
    assert!(matches!(problem, StoreError::Unavailable(_)), "{problem:?}");
    assert!(problem.to_string().contains("does not allow writes"), "{problem}");
    drop(leadership);
    let again = stand(&node);
    server.set_read_only(false).await;
    assert!(soon(again).await.unwrap().term() > Term::new(1));
}

/// The claim is granted, and its node does not hear of it: it leads when it has asked again, and under the
/// one term that was granted.
pub async fn a_claim_whose_answer_is_lost_is_read_back_and_granted_once<S: SqlServer>() {
    let server = S::start();
    let proxy = Proxy::before(server.port());
    let node = start(calm("a"), &server.url_by(proxy.port())).await;
    // By now both its lines are open: what gets lost is an answer, and not a greeting.
    soon(node.store().elections()).await.unwrap();
    proxy.lose_replies();
    let elected = stand(&node);
    until(&server, "SELECT COUNT(*) FROM {t}elections WHERE term = 1").await;
    assert!(!elected.is_finished(), "it leads before it knows");
    proxy.pass();
    let leadership = soon(elected).await.unwrap();
    assert_eq!(leadership.check(), Ok(Term::new(1)));
    let granted = "SELECT COUNT(*) FROM {t}events WHERE kind = 'leader_elected'";
    assert_eq!(ask(&server, granted).await, "1");
}

/// A leader that is cut off, by whatever kind of cut, and a rival that is not.
async fn cut_off<S: SqlServer>(cut: impl Fn(&Proxy)) {
    let server = S::start();
    let far = |port| server.url_by(port);
    a_leader_that_is_cut_off_is_succeeded(server.port(), &server.url(), far, cut).await;
}

pub async fn a_leader_whose_words_are_held_longer_than_its_lease_is_succeeded_and_never_returns<
    S: SqlServer,
>() {
    cut_off::<S>(Proxy::hold).await;
}

pub async fn a_leader_whose_words_are_dropped_is_succeeded_without_overlap<S: SqlServer>() {
    cut_off::<S>(Proxy::drop_everything).await;
}

/// It holds its lease on the store, renewed all the time; but it does not know, so it must not lead.
pub async fn a_leader_that_hears_no_answers_is_succeeded_without_overlap<S: SqlServer>() {
    cut_off::<S>(Proxy::lose_replies).await;
}

pub async fn a_leader_whose_connections_are_reset_and_refused_is_succeeded_without_overlap<S: SqlServer>() {
    cut_off::<S>(|proxy| {
        proxy.refuse();
        proxy.reset();
    })
    .await;
}

/// Slow is not dead.
pub async fn a_slow_way_to_the_server_changes_no_leader<S: SqlServer>() {
    let server = S::start();
    let proxy = Proxy::before(server.port());
    let node = start(calm("a"), &server.url_by(proxy.port())).await;
    let leadership = lead(&node).await;
    proxy.delay(Duration::from_millis(150), Duration::from_millis(150));
    renewals(&node, 4).await;
    proxy.reset();
    renewals(&node, 2).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
}

/// As behind a pool that does not pass on what is told. No lease lapses here, so only a look can tell.
pub async fn without_news_a_lease_that_was_given_up_is_found_by_looking<S: SqlServer>() {
    let server = S::start();
    let a = start(calm("a"), &server.url()).await;
    let b = start(calm("b").poll_every(Duration::from_millis(300)), &server.url()).await;
    let leadership = lead(&a).await;
    let deaf = server.deafen().await;
    let successor = stand(&b);
    until(&server, "SELECT COUNT(*) FROM {t}candidates").await;
    soon(leadership.resign()).await.unwrap();
    let elected = soon(successor).await;
    drop(deaf);
    assert_eq!(elected.unwrap().term(), Term::new(2));
}

pub async fn a_server_without_a_connection_to_spare_says_so_and_its_leader_leads_on<S: SqlServer>() {
    let server = S::start_small();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let mut stores = Vec::new();
    let problem = soon(async {
        loop {
            match connect(&server).await {
                // It has room for itself, so let it take that.
                Ok(store) => {
                    let _ = store.elections().await;
                    stores.push(store);
                }
                Err(problem) => return problem,
            }
        }
    })
    .await;
    assert!(matches!(problem, StoreError::Unavailable(_)), "{problem:?}");
    let problem = problem.to_string();
    assert!(S::FULL.iter().all(|words| problem.contains(words)), "{problem}");
    renewals(&node, 3).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
    stores.clear();
    soon(async { while connect(&server).await.is_err() {} }).await;
}

/// The second renewal of a failing server is tried on a connection that did not exist before the failure.
pub async fn a_server_that_is_gone_is_unavailable_and_the_store_is_usable_when_it_is_back<S: SqlServer>() {
    let mut server = S::start();
    let store = connect(&server).await.unwrap();
    let session = open(&store, 1).await;
    assert_eq!(win(&store, session).await, Term::new(1));
    server.stop();
    for attempt in 1..4 {
        let problem = soon(store.renew(session, 2, attempt)).await.unwrap_err();
        let expected = matches!(problem, StoreError::Unavailable(_) | StoreError::Indeterminate(_));
        assert!(expected, "{problem:?}");
    }
    server.launch();
    assert_eq!(soon(store.renew(session, 3, 1)).await.unwrap().value.previous, 1);
    // A connection that ended while nobody used it may be found out only now. Then it is asked again.
    let standing = soon(async {
        loop {
            match store.claim(claiming(session)).await {
                Err(StoreError::Indeterminate(_)) => {}
                answer => return answer.unwrap().value,
            }
        }
    });
    let as_it_was = Standing::Leading { term: Term::new(1) };
    assert_eq!(standing.await, as_it_was, "the lease is what it was");
}
