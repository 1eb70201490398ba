//! What becomes of leaders when the server, or the way to it, fails.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod common;

use std::time::Duration;

use common::{
    ELECTION, Witness, ask, brief, by_hand, calm, connect, lead, open, renewals, soon, stand, start,
    try_by_hand, until, win,
};
use rustix::process::{Pid, Signal, kill_process};
use tenure::{Reason, Term};
use tenure_store::{Store, StoreError, clock};
use tenure_testkit::checker::check_leaderships;
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::Postgres;

#[tokio::test]
async fn a_leader_whose_every_connection_is_ended_once_a_second_keeps_its_term() {
    let server = Postgres::start();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let person = by_hand(&server.url()).await;
    for _ in 0..6 {
        let ended: i64 = ask(
            &person,
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'tenure'",
        )
        .await;
        assert!(ended > 0, "there was something to end");
        renewals(&node, 1).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    renewals(&node, 2).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
}

/// The server may have committed before it noticed that it was to end, so that is no refusal.
#[tokio::test]
async fn a_request_over_which_the_server_ends_the_connection_is_indeterminate() {
    let server = Postgres::start();
    let store = connect(&server.url()).await.unwrap();
    let session = open(&store, 1).await;
    let mut holder = by_hand(&server.url()).await;
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("SELECT 1 FROM tenure.sessions FOR UPDATE").await.unwrap();
    let person = by_hand(&server.url()).await;
    let renewal = tokio::spawn(async move {
        let outcome = store.renew(session, 2, 1).await;
        (store, outcome)
    });
    let waits = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%renew%'";
    let ended = format!("SELECT count(pg_terminate_backend(pid)) > 0 {waits}");
    until(&person, &ended).await;
    let (store, outcome) = soon(renewal).await.unwrap();
    assert!(matches!(outcome, Err(StoreError::Indeterminate(_))), "{outcome:?}");
    lock.rollback().await.unwrap();
    assert_eq!(soon(store.renew(session, 3, 2)).await.unwrap().value.previous, 1, "the store is usable");
}

#[tokio::test]
async fn a_server_that_is_restarted_within_the_lease_changes_no_leader() {
    let mut server = Postgres::start();
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
#[tokio::test]
async fn a_server_that_is_killed_and_launched_again_goes_on_with_rising_terms() {
    let mut server = Postgres::start_with(&[]);
    let node = start(calm("a"), &server.url()).await;
    for term in 1..=3 {
        let leadership = lead(&node).await;
        server.kill();
        server.launch();
        renewals(&node, 1).await;
        assert_eq!(leadership.check(), Ok(Term::new(term)));
        let person = by_hand(&server.url()).await;
        assert_eq!(ask::<i64>(&person, "SELECT term FROM tenure.elections").await, term as i64);
        soon(leadership.resign()).await.unwrap();
    }
}

/// Only a person can end it, and until then the leader may do what its lease allows.
#[tokio::test]
async fn on_a_server_that_has_become_read_only_a_leader_carries_on_to_its_deadline() {
    let server = Postgres::start();
    let node = start(brief("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let person = by_hand(&server.url()).await;
    let set = async |value: &str| {
        let sql = format!("ALTER SYSTEM SET default_transaction_read_only = {value}");
        person.batch_execute(&sql).await.unwrap();
        person.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    };
    let due = node.held().now().until;
    set("on").await;
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    let problem = connect(&server.url()).await.err().unwrap();
    assert!(matches!(problem, StoreError::Unavailable(_)), "{problem:?}");
    assert!(problem.to_string().contains("does not allow writes"), "{problem}");
    drop(leadership);
    let again = stand(&node);
    set("off").await;
    assert!(soon(again).await.unwrap().term() > Term::new(1));
}

/// The claim is granted, and its node does not hear of it: it leads when it has asked again, and under the
/// one term that was granted.
#[tokio::test]
async fn a_claim_whose_answer_is_lost_is_read_back_and_granted_once() {
    let server = Postgres::start();
    let proxy = Proxy::before(server.port());
    let node = start(calm("a"), &server.url_by(proxy.port())).await;
    // By now both its lines are open: what gets lost is an answer, and not a greeting.
    assert_eq!(soon(node.election(ELECTION).unwrap().leader()).await.unwrap(), None);
    let person = by_hand(&server.url()).await;
    proxy.lose_replies();
    let elected = stand(&node);
    until(&person, "SELECT EXISTS (SELECT 1 FROM tenure.elections WHERE term = 1)").await;
    assert!(!elected.is_finished(), "it leads before it knows");
    proxy.pass();
    let leadership = soon(elected).await.unwrap();
    assert_eq!(leadership.check(), Ok(Term::new(1)));
    let granted = "SELECT count(*) FROM tenure.events WHERE kind = 'leader_elected'";
    assert_eq!(ask::<i64>(&person, granted).await, 1);
}

/// A leader that is cut off, by whatever kind of cut, and a rival that is not.
async fn cut_off(cut: impl Fn(&Proxy)) {
    let server = Postgres::start();
    let proxy = Proxy::before(server.port());
    let far = start(brief("far"), &server.url_by(proxy.port())).await;
    let near = start(brief("near"), &server.url()).await;
    let first = lead(&far).await;
    let first_watch = Witness::of(&far, &first);
    let successor = stand(&near);
    let due = far.held().now().until;
    cut(&proxy);
    assert_eq!(soon(first.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    let second = soon(successor).await.unwrap();
    let second_watch = Witness::of(&near, &second);
    // Whatever was on its way arrives now, late.
    proxy.pass();
    drop(first);
    let third = stand(&far);
    renewals(&near, 3).await;
    assert!(!third.is_finished());
    soon(second.resign()).await.unwrap();
    let (mut told, third) = (vec![first_watch.tell(), second_watch.tell()], soon(third).await.unwrap());
    told.push(Witness::of(&far, &third).tell());
    assert_eq!(check_leaderships(&told), []);
    assert_eq!(told.iter().map(|one| one.term).collect::<Vec<_>>(), [1, 2, 3]);
}

#[tokio::test]
async fn a_leader_whose_words_are_held_longer_than_its_lease_is_succeeded_and_never_returns() {
    cut_off(Proxy::hold).await;
}

#[tokio::test]
async fn a_leader_whose_words_are_dropped_is_succeeded_without_overlap() {
    cut_off(Proxy::drop_everything).await;
}

/// It holds its lease on the store, renewed all the time; but it does not know, so it must not lead.
#[tokio::test]
async fn a_leader_that_hears_no_answers_is_succeeded_without_overlap() {
    cut_off(Proxy::lose_replies).await;
}

#[tokio::test]
async fn a_leader_whose_connections_are_reset_and_refused_is_succeeded_without_overlap() {
    cut_off(|proxy| {
        proxy.refuse();
        proxy.reset();
    })
    .await;
}

/// Slow is not dead.
#[tokio::test]
async fn a_slow_way_to_the_server_changes_no_leader() {
    let server = Postgres::start();
    let proxy = Proxy::before(server.port());
    let node = start(calm("a"), &server.url_by(proxy.port())).await;
    let leadership = lead(&node).await;
    proxy.delay(Duration::from_millis(150), Duration::from_millis(150));
    renewals(&node, 4).await;
    proxy.reset();
    renewals(&node, 2).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
}

/// A backend that is stopped hears nothing and says nothing, and its connection stays open: as behind a
/// pool that does not pass on what is notified. No lease lapses here, so only a look can tell.
#[tokio::test]
async fn without_news_a_lease_that_was_given_up_is_found_by_looking() {
    let server = Postgres::start();
    let a = start(calm("a"), &server.url()).await;
    let deaf = format!("{}?application_name=deaf", server.url());
    let b = start(calm("b").poll_every(Duration::from_millis(300)), &deaf).await;
    let leadership = lead(&a).await;
    let person = by_hand(&server.url()).await;
    let listens = "FROM pg_stat_activity
                   WHERE application_name = 'deaf' AND state = 'idle' AND query LIKE 'LISTEN%'";
    until(&person, &format!("SELECT EXISTS (SELECT 1 {listens})")).await;
    let listener: i32 = ask(&person, &format!("SELECT pid {listens}")).await;
    let listener = Pid::from_raw(listener).unwrap();
    kill_process(listener, Signal::STOP).unwrap();
    let successor = stand(&b);
    until(&person, "SELECT EXISTS (SELECT 1 FROM tenure.candidates)").await;
    soon(leadership.resign()).await.unwrap();
    let elected = soon(successor).await;
    kill_process(listener, Signal::CONT).unwrap();
    assert_eq!(elected.unwrap().term(), Term::new(2));
}

#[tokio::test]
async fn a_server_without_a_connection_to_spare_says_so_and_its_leader_leads_on() {
    let server =
        Postgres::start_with(&["fsync=off", "max_connections=8", "superuser_reserved_connections=0"]);
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let mut people = Vec::new();
    while let Ok(person) = try_by_hand(&server.url()).await {
        people.push(person);
    }
    let problem = connect(&server.url()).await.err().unwrap();
    assert!(matches!(problem, StoreError::Unavailable(_)), "{problem:?}");
    let problem = problem.to_string();
    assert!(problem.contains("too many clients") && problem.contains("max_connections"), "{problem}");
    renewals(&node, 3).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
    people.clear();
    soon(async { while connect(&server.url()).await.is_err() {} }).await;
}

/// The second renewal of a failing server is tried on a connection that did not exist before the failure.
#[tokio::test]
async fn a_server_that_is_gone_is_unavailable_and_the_store_is_usable_when_it_is_back() {
    let mut server = Postgres::start();
    let store = connect(&server.url()).await.unwrap();
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
    assert_eq!(win(&store, session).await, Term::new(1), "the lease is what it was");
}
