//! What becomes of leaders when people change Tenure's tables by hand. Tenure promises nothing then; but it
//! refuses what it can, and otherwise says what is wrong or steps down.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod common;

use std::time::Duration;

use common::{
    ELECTION, ask, brief, by_hand, calm, claiming, connect, lead, misconfigured, name, open, refused, soon,
    stand, start, win,
};
use tenure::{ElectionError, Ending, Reason, Term};
use tenure_core::Standing;
use tenure_store::{Store, clock};
use tenure_testkit::server::Postgres;

#[tokio::test]
async fn what_would_break_a_promise_is_refused_by_the_database_in_words() {
    let server = Postgres::start();
    let store = connect(&server.url()).await.unwrap();
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    assert_eq!(win(&store, first).await, Term::new(1));
    let person = by_hand(&server.url()).await;
    let refusals = [
        ("UPDATE tenure.elections SET term = 0", "terms only rise"),
        ("UPDATE tenure.elections SET floor = -1", "terms only rise"),
        ("DELETE FROM tenure.elections", "use `tenure delete`"),
        ("TRUNCATE tenure.elections", "use `tenure delete`"),
        ("UPDATE tenure.elections SET election = 'other'", "cannot be renamed"),
        ("UPDATE tenure.elections SET session = 'nobody', term = 2", "foreign key"),
        (&*format!("UPDATE tenure.elections SET session = '{second}'"), "only with a higher term"),
        ("DELETE FROM tenure.sessions", "the session is live"),
        ("TRUNCATE tenure.sessions CASCADE", "stop the nodes instead"),
        ("UPDATE tenure.sessions SET state = 'dead'", "check constraint"),
        ("DELETE FROM tenure.meta", "the row names this store"),
        ("TRUNCATE tenure.meta", "the row names this store"),
    ];
    for (sql, words) in refusals {
        let said = refused(&person, sql).await;
        assert!(said.contains(words), "{sql}: {said}");
    }
    assert_eq!(win(&store, first).await, Term::new(1), "nothing changed");
    let Standing::Refused { .. } = soon(store.claim(claiming(second))).await.unwrap().value else {
        panic!("granted twice")
    };
}

#[tokio::test]
async fn a_leader_whose_lease_was_taken_away_by_hand_steps_down_when_another_is_granted_it() {
    let server = Postgres::start();
    let (a, b) = (start(calm("a"), &server.url()).await, start(calm("b"), &server.url()).await);
    let first = lead(&a).await;
    let successor = stand(&b);
    let person = by_hand(&server.url()).await;
    person.batch_execute("UPDATE tenure.elections SET session = NULL").await.unwrap();
    assert_eq!(soon(first.lost()).await, Reason::Superseded);
    assert_eq!(soon(successor).await.unwrap().check(), Ok(Term::new(2)));
}

#[tokio::test]
async fn a_lease_that_was_taken_away_by_hand_is_granted_again_under_a_higher_term() {
    let server = Postgres::start();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let person = by_hand(&server.url()).await;
    person.batch_execute("UPDATE tenure.elections SET session = NULL").await.unwrap();
    soon(leadership.resign()).await.unwrap();
    drop(leadership);
    assert_eq!(lead(&node).await.term(), Term::new(2));
}

#[tokio::test]
async fn a_session_that_was_ended_by_hand_costs_its_leader_the_term() {
    let server = Postgres::start();
    // A store that forgets sessions is doubted for a whole ttl, so let that be short.
    let node = start(calm("a").ttl(Duration::from_secs(5)), &server.url()).await;
    let leadership = lead(&node).await;
    let person = by_hand(&server.url()).await;
    person.batch_execute("UPDATE tenure.sessions SET state = 'expired'").await.unwrap();
    // Whichever comes first: a renewal, or a look at the lease, which nobody holds any more.
    let reason = soon(leadership.lost()).await;
    assert!(matches!(reason, Reason::SessionLost | Reason::Superseded), "{reason}");
    drop(leadership);
    assert_eq!(lead(&node).await.term(), Term::new(2));
}

/// A person may raise a term, even to where nothing is above it. Then nobody is granted one.
#[tokio::test]
async fn a_term_that_nothing_can_be_above_is_an_error_and_never_granted_twice() {
    let server = Postgres::start();
    let store = connect(&server.url()).await.unwrap();
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, first).await;
    let person = by_hand(&server.url()).await;
    for column in ["floor", "term"] {
        let raise = format!("UPDATE tenure.elections SET session = NULL, {column} = {}", i64::MAX);
        person.batch_execute(&raise).await.unwrap();
        for session in [first, second] {
            let said = misconfigured(soon(store.claim(claiming(session))).await);
            assert!(said.contains("out of range") && said.contains("rename the election"), "{said}");
        }
        let said = misconfigured(soon(store.delete(name(ELECTION), true)).await);
        assert!(said.contains("rename the election"), "{said}");
        let record = soon(store.read(name(ELECTION))).await.unwrap().value;
        assert_eq!((record.term, record.holder), (Term::new(i64::MAX as u64), None), "it can be looked at");
    }
    assert_eq!(soon(store.renew(first, 2, 1)).await.unwrap().value.previous, 1, "other elections go on");
    let mut claim = claiming(first);
    claim.election = name("others");
    claim.above = Term::new(u64::MAX);
    misconfigured(soon(store.claim(claim)).await);
}

#[tokio::test]
async fn words_that_tenure_did_not_write_are_an_error_and_no_panic() {
    let server = Postgres::start();
    let store = connect(&server.url()).await.unwrap();
    let session = open(&store, 1).await;
    win(&store, session).await;
    let person = by_hand(&server.url()).await;
    let edits = [
        ("sessions", "node = ''", "node = 'n1'"),
        ("sessions", "sequence = -1", "sequence = 1"),
        ("sessions", "ttl_ms = -5", "ttl_ms = 10000"),
        ("sessions", "renewed_at = 'infinity'", "renewed_at = now()"),
        ("elections", "heir = repeat('x', 1000)", "heir = NULL"),
    ];
    for (table, edit, undo) in edits {
        person.batch_execute(&format!("UPDATE tenure.{table} SET {edit}")).await.unwrap();
        misconfigured(soon(store.read(name(ELECTION))).await);
        person.batch_execute(&format!("UPDATE tenure.{table} SET {undo}")).await.unwrap();
        assert_eq!(soon(store.read(name(ELECTION))).await.unwrap().value.term, Term::new(1));
    }
    // A history that was set back is found out by the next line of it.
    person.batch_execute("UPDATE tenure.elections SET session = NULL, events = 0").await.unwrap();
    let said = misconfigured(soon(store.claim(claiming(session))).await);
    assert!(said.contains("changed by hand"), "{said}");
}

/// The leader is not to blame, and leads as long as its lease allows; then a person must act, and is told.
#[tokio::test]
async fn a_leader_whose_schema_was_dropped_carries_on_to_its_deadline_and_ends_with_advice() {
    let server = Postgres::start();
    let node = start(brief("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let person = by_hand(&server.url()).await;
    let due = node.held().now().until;
    person.batch_execute("DROP SCHEMA tenure CASCADE").await.unwrap();
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    drop(leadership);
    let ended = soon(node.election(ELECTION).unwrap().elected()).await.unwrap_err();
    let ElectionError::Closed(Ending::Misconfigured(advice)) = &ended else { panic!("{ended:?}") };
    assert!(advice.contains("stop all nodes, restore them, and start again"), "{advice}");
    let there: bool = ask(&person, "SELECT to_regnamespace('tenure') IS NOT NULL").await;
    assert!(!there, "a running node never makes the tables again");
}

#[tokio::test]
async fn a_dropped_table_is_an_error_that_says_what_to_do_and_the_rest_can_be_looked_at() {
    let server = Postgres::start();
    let store = connect(&server.url()).await.unwrap();
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, first).await;
    let person = by_hand(&server.url()).await;
    person.batch_execute("DROP TABLE tenure.candidates CASCADE").await.unwrap();
    let said = misconfigured(soon(store.claim(claiming(second))).await);
    assert!(said.contains("restore them"), "{said}");
    assert_eq!(soon(store.read(name(ELECTION))).await.unwrap().value.term, Term::new(1));
}
