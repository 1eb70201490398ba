//! A synchronous standby that does not answer. What is not replicated must not be taken for truth (rule 8):
//! PostgreSQL commits such a write all the same when its wait is cancelled, and only warns.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{
    ELECTION, ask, brief, by_hand, calm, claiming, connect, demand, lead, name, open, renewals, soon, stand,
    start, until, waits, win,
};
use rustix::process::Signal;
use tenure::{Reason, Term, TransactionError};
use tenure_core::{Record, Standing};
use tenure_store::{Cause, Resign, StoreError, Told, TransactionError as Fenced, clock};
use tenure_testkit::server::Postgres;
use tokio_postgres::Client;

/// Ends the wait of those whose statement this is in, in this way; there was one.
async fn interrupt(person: &Client, way: &str, statement: &str) {
    let of = format!("application_name = 'tenure' AND query LIKE '%{statement}%'");
    until(person, &waits(&of)).await;
    let sql = format!("SELECT count({way}(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND {of}");
    assert_eq!(ask::<i64>(person, &sql).await, 1);
}

/// Whatever the role has been told: a server that does not even warn is told to.
#[tokio::test]
async fn a_grant_whose_wait_for_a_standby_is_cancelled_is_told_only_once_it_is_replicated() {
    let server = Postgres::start();
    let person = by_hand(&server.url()).await;
    person.batch_execute("ALTER ROLE postgres SET client_min_messages = error").await.unwrap();
    let store = Arc::new(connect(&server.url()).await.unwrap());
    let session = open(&store, 1).await;
    demand(&person, &server.url(), "nobody").await;
    let claim = || {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.claim(claiming(session)).await })
    };
    for (granted, way) in [(0, "pg_cancel_backend"), (1, "pg_terminate_backend"), (1, "pg_cancel_backend")] {
        let claimed = claim();
        assert_eq!(
            ask::<i64>(&person, "SELECT count(*) FROM tenure.elections WHERE term = 1").await,
            granted
        );
        interrupt(&person, way, "claim").await;
        let outcome = soon(claimed).await.unwrap();
        assert!(matches!(outcome, Err(StoreError::Indeterminate(_))), "{way}: {outcome:?}");
    }
    let claimed = claim();
    until(&person, &waits("query LIKE '%claim%'")).await;
    assert!(!claimed.is_finished());
    demand(&person, &server.url(), "").await;
    let standing = soon(claimed).await.unwrap().unwrap().value;
    assert!(matches!(standing, Standing::Leading { term } if term == Term::new(1)), "{standing:?}");
    let told = "SELECT count(*) FROM tenure.events WHERE kind = 'leader_elected'";
    assert_eq!(ask::<i64>(&person, told).await, 1);
    soon(store.renew(session, 2, 1)).await.unwrap();
}

/// It learns of its grant by a read.
#[tokio::test]
async fn a_successor_is_told_of_its_grant_only_once_that_is_replicated() {
    let server = Postgres::start();
    let person = by_hand(&server.url()).await;
    let (here, there) = (connect(&server.url()).await.unwrap(), connect(&server.url()).await.unwrap());
    let (leader, successor) = (open(&here, 1).await, open(&there, 2).await);
    win(&here, leader).await;
    soon(there.claim(claiming(successor))).await.unwrap();
    demand(&person, &server.url(), "nobody").await;
    let (election, cause) = (name(ELECTION), Cause::Resigned);
    let resigned = here.resign(Resign { session: leader, election, attempt: 2, term: None, to: None, cause });
    let (outcome, ()) =
        soon(async { tokio::join!(resigned, interrupt(&person, "pg_cancel_backend", "resign")) }).await;
    assert!(matches!(outcome, Err(StoreError::Indeterminate(_))), "{outcome:?}");
    let holder =
        |told: Told<Record>| told.value.holder.map(|holder| (holder.term, holder.pulse.stamp.session));
    let granted = Some((Term::new(2), successor));
    assert_eq!(holder(soon(here.read(name(ELECTION))).await.unwrap()), granted, "others may know");
    let read = tokio::spawn(async move { there.read(name(ELECTION)).await });
    until(&person, &waits("query LIKE '%look%'")).await;
    assert!(!read.is_finished());
    demand(&person, &server.url(), "").await;
    assert_eq!(holder(soon(read).await.unwrap().unwrap()), granted);
}

#[tokio::test]
async fn a_renewal_whose_wait_for_a_standby_is_cancelled_is_indeterminate() {
    let server = Postgres::start();
    let person = by_hand(&server.url()).await;
    let store = connect(&server.url()).await.unwrap();
    let session = open(&store, 1).await;
    assert_eq!(win(&store, session).await, Term::new(1));
    demand(&person, &server.url(), "nobody").await;
    let (outcome, ()) = soon(async {
        tokio::join!(store.renew(session, 2, 1), interrupt(&person, "pg_cancel_backend", "renew"))
    })
    .await;
    let said = outcome.unwrap_err();
    assert!(matches!(said, StoreError::Indeterminate(_)), "{said:?}");
    assert!(said.to_string().contains("standby"), "{said}");
}

/// Its entry is there, and may be lost: so the application is not told that it was written.
#[tokio::test]
async fn a_fenced_transaction_whose_wait_for_a_standby_is_cancelled_has_an_unknown_outcome() {
    let server = Postgres::start();
    let person = by_hand(&server.url()).await;
    person.batch_execute("CREATE TABLE ledger (entry text)").await.unwrap();
    let leadership = lead(&start(calm("a"), &server.url()).await).await;
    demand(&person, &server.url(), "nobody").await;
    let written = leadership.postgres_transaction(async |transaction| {
        transaction.execute("INSERT INTO ledger VALUES ('an entry')", &[]).await
    });
    let (outcome, ()) =
        soon(async { tokio::join!(written, interrupt(&person, "pg_cancel_backend", "COMMIT")) }).await;
    let unknown =
        matches!(&outcome, Err(TransactionError::Store(Fenced::Store(StoreError::Indeterminate(_)))));
    assert!(unknown, "{outcome:?}");
}

/// A real standby, which stops in the middle of it all and is there again in time.
#[tokio::test]
async fn a_leader_whose_standby_is_back_in_time_leads_on() {
    let primary = Postgres::start();
    let node = start(calm("a").ttl(Duration::from_secs(10)), &primary.url()).await;
    let person = by_hand(&primary.url()).await;
    let standby = primary.replica();
    person.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await.unwrap();
    person.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let synced = "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')";
    until(&person, synced).await;
    let leadership = lead(&node).await;
    for _ in 0..2 {
        standby.signal_all(Signal::STOP);
        until(&person, &waits("query LIKE '%renew%'")).await;
        let due = node.held().now().until;
        let now: String = ask(&person, "SELECT now()::text").await;
        // The next try, on a connection of its own, waits as well: nothing is taken for renewed.
        until(&person, &waits(&format!("query LIKE '%renew%' AND backend_start > '{now}'"))).await;
        assert_eq!(node.held().now().until, due);
        standby.signal_all(Signal::CONT);
        renewals(&node, 2).await;
        assert_eq!(leadership.check(), Ok(Term::new(1)));
    }
}

/// And one that stays away: nobody leads, and when it is back, somebody does under a higher term.
#[tokio::test]
async fn without_its_standby_a_leader_steps_down_at_its_deadline_and_nobody_leads() {
    let primary = Postgres::start();
    let (a, b) = (start(brief("a"), &primary.url()).await, start(brief("b"), &primary.url()).await);
    let person = by_hand(&primary.url()).await;
    let leadership = lead(&a).await;
    let successor = stand(&b);
    until(&person, "SELECT EXISTS (SELECT 1 FROM tenure.candidates)").await;
    let standby = primary.replica();
    person.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await.unwrap();
    person.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    until(&person, "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')").await;
    renewals(&a, 1).await;
    standby.signal_all(Signal::STOP);
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= a.held().now().until, "not before its deadline");
    drop(leadership);
    // Its rival could not renew either, and waits for the standby like everybody, with a new session.
    until(&person, &waits("query LIKE '%open(%'")).await;
    assert!(!successor.is_finished());
    let backends = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tenure'";
    assert!(ask::<i64>(&person, backends).await <= 10, "those that were given up do not pile up");
    standby.signal_all(Signal::CONT);
    let next = soon(successor).await.unwrap();
    assert!(next.check().unwrap() > Term::new(1));
    let repeated = format!(
        "SELECT EXISTS (SELECT 1 FROM tenure.events WHERE kind = 'leader_elected' AND election = '{ELECTION}'
         GROUP BY term HAVING count(*) > 1)"
    );
    assert!(!ask::<bool>(&person, &repeated).await);
}
