//! What becomes of leaders when people change Tenure's tables by hand. Tenure promises nothing then; but it
//! refuses what it can, and otherwise says what is wrong or steps down.

use std::time::Duration;

use tenure::{Reason, Term};
use tenure_core::Standing;

use super::SqlServer;
use super::stage::{
    ELECTION, ask, calm, claiming, connect, lead, misconfigured, name, open, soon, stand, start, win,
};

pub async fn what_would_break_a_promise_is_refused_by_the_database_in_words<S: SqlServer>() {
    let server = S::start();
    let store = connect(&server).await.unwrap();
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    assert_eq!(win(&store, first).await, Term::new(1));
    let refusals = [
        ("UPDATE {t}elections SET term = 0", "terms only rise"),
        ("UPDATE {t}elections SET floor = -1", "terms only rise"),
        ("DELETE FROM {t}elections", "use `tenure delete`"),
        ("UPDATE {t}elections SET election = 'other'", "cannot be renamed"),
        ("UPDATE {t}elections SET session = 'nobody', term = 2", "foreign key"),
        (&*format!("UPDATE {{t}}elections SET session = '{second}'"), "only with a higher term"),
        ("DELETE FROM {t}sessions", "the session is live"),
        ("UPDATE {t}sessions SET state = 'dead'", "constraint"),
        ("DELETE FROM {t}meta", "the row names this store"),
    ];
    for (sql, words) in refusals.iter().chain(S::REFUSED) {
        let said = soon(server.ask(sql)).await.expect_err(sql);
        assert!(said.to_lowercase().contains(words), "{sql}: {said}");
    }
    assert_eq!(win(&store, first).await, Term::new(1), "nothing changed");
    let Standing::Waiting { .. } = soon(store.claim(claiming(second))).await.unwrap().value else {
        panic!("granted twice")
    };
}

pub async fn a_leader_whose_lease_was_taken_away_by_hand_steps_down_when_another_is_granted_it<
    S: SqlServer,
>() {
    let server = S::start();
    let (a, b) = (start(calm("a"), &server.url()).await, start(calm("b"), &server.url()).await);
    let first = lead(&a).await;
    let successor = stand(&b);
    ask(&server, "UPDATE {t}elections SET session = NULL").await;
    assert_eq!(soon(first.lost()).await, Reason::Superseded);
    assert_eq!(soon(successor).await.unwrap().check(), Ok(Term::new(2)));
}

pub async fn a_lease_that_was_taken_away_by_hand_is_granted_again_under_a_higher_term<S: SqlServer>() {
    let server = S::start();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    ask(&server, "UPDATE {t}elections SET session = NULL").await;
    // Whichever comes first: the resignation, or a look at the lease, which nobody holds any more.
    if let Err(lost) = soon(leadership.resign()).await {
        assert!(lost.to_string().contains(&Reason::Superseded.to_string()), "{lost}");
    }
    drop(leadership);
    assert_eq!(lead(&node).await.term(), Term::new(2));
}

pub async fn a_session_that_was_ended_by_hand_costs_its_leader_the_term<S: SqlServer>() {
    let server = S::start();
    // A store that forgets sessions is doubted for a whole ttl, so let that be short.
    let node = start(calm("a").ttl(Duration::from_secs(5)), &server.url()).await;
    let leadership = lead(&node).await;
    ask(&server, "UPDATE {t}sessions SET state = 'expired'").await;
    // Whichever comes first: a renewal, or a look at the lease, which nobody holds any more.
    let reason = soon(leadership.lost()).await;
    assert!(matches!(reason, Reason::SessionLost | Reason::Superseded), "{reason}");
    drop(leadership);
    assert_eq!(lead(&node).await.term(), Term::new(2));
}

/// A person may raise a term, even to where nothing is above it. Then nobody is granted one.
pub async fn a_term_that_nothing_can_be_above_is_an_error_and_never_granted_twice<S: SqlServer>() {
    let server = S::start();
    let store = connect(&server).await.unwrap();
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, first).await;
    for column in ["floor", "term"] {
        let raise = format!("UPDATE {{t}}elections SET session = NULL, {column} = {}", i64::MAX);
        ask(&server, &raise).await;
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

pub async fn words_that_tenure_did_not_write_are_an_error_and_no_panic<S: SqlServer>() {
    let server = S::start();
    let store = connect(&server).await.unwrap();
    let session = open(&store, 1).await;
    win(&store, session).await;
    let edits = [
        ("sessions", "node = ''", "node = 'n1'"),
        ("sessions", "sequence = -1", "sequence = 1"),
        ("sessions", "ttl_ms = -5", "ttl_ms = 10000"),
        ("elections", "asked_for = repeat('é', 100)", "asked_for = NULL"),
    ];
    for (table, edit, undo) in edits {
        ask(&server, &format!("UPDATE {{t}}{table} SET {edit}")).await;
        misconfigured(soon(store.read(name(ELECTION))).await);
        ask(&server, &format!("UPDATE {{t}}{table} SET {undo}")).await;
        assert_eq!(soon(store.read(name(ELECTION))).await.unwrap().value.term, Term::new(1));
    }
}

/// By the next line of it.
pub async fn a_history_that_was_set_back_is_found_out<S: SqlServer>() {
    let server = S::start();
    let store = connect(&server).await.unwrap();
    let session = open(&store, 1).await;
    win(&store, session).await;
    ask(&server, "UPDATE {t}elections SET session = NULL, events = 0").await;
    let said = misconfigured(soon(store.claim(claiming(session))).await);
    assert!(said.contains("changed by hand"), "{said}");
}
