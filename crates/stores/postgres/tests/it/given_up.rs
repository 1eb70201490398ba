//! Requests that nobody waits for any more: they end in the server too, within bounds, and are not carried
//! out later.

use std::future::Future;

use crate::common::{
    ELECTION, ask, by_hand, calm, connect, demand, lead, name, open, soon, start, until, win,
};
use futures_util::{FutureExt, StreamExt};
use tenure_store::Hint;
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::Postgres;
use tokio_postgres::Client;

/// Drops a request once the server is at it; then waits until the server is not.
async fn give_up(person: &Client, request: impl Future, at_it: &str, meanwhile: impl FnOnce()) {
    let at_it =
        format!("EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = 'tenure' AND {at_it})");
    let yes = format!("SELECT {at_it}");
    tokio::select! {
        _ = request => panic!("it is answered, and should wait"),
        () = until(person, &yes) => meanwhile(),
    }
    until(person, &format!("SELECT NOT {at_it}")).await;
}

const LOCKED: &str = "wait_event_type = 'Lock'";

/// It waits for a lock no longer than a second, be its client there or not.
async fn locked_out(cut: impl FnOnce(&Proxy)) {
    let server = Postgres::start();
    let proxy = Proxy::before(server.port());
    let store = connect(&server.url_by(proxy.port())).await.unwrap();
    let session = open(&store, 1).await;
    let (mut holder, person) = (by_hand(&server.url()).await, by_hand(&server.url()).await);
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("SELECT 1 FROM tenure.sessions FOR UPDATE").await.unwrap();
    give_up(&person, store.renew(session, 7, 1), LOCKED, || cut(&proxy)).await;
    lock.rollback().await.unwrap();
    proxy.pass();
    assert_eq!(soon(store.renew(session, 8, 2)).await.unwrap().value.previous, 1, "7 was not written");
}

#[tokio::test]
async fn a_write_that_waits_for_a_lock_and_is_given_up_is_never_carried_out() {
    locked_out(|_| ()).await;
}

#[tokio::test]
async fn a_write_that_waits_for_a_lock_and_is_cut_off_is_never_carried_out() {
    locked_out(Proxy::drop_everything).await;
}

/// A wait for a standby has no end of its own: whoever comes next on the same line ends it, so they do not
/// pile up until the server has no connection to spare.
#[tokio::test]
async fn a_write_that_waits_for_a_standby_and_is_given_up_is_cancelled_by_the_next() {
    let server = Postgres::start();
    let store = connect(&server.url()).await.unwrap();
    let session = open(&store, 1).await;
    let person = by_hand(&server.url()).await;
    demand(&person, &server.url(), "nobody").await;
    let waits = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%renew%'";
    let mut before: i32 = 0;
    for sequence in 2..6 {
        let new = format!("SELECT count(*) FILTER (WHERE pid <> {before}) = 1 AND count(*) = 1 {waits}");
        tokio::select! {
            answer = store.renew(session, sequence, 1) => panic!("{answer:?}"),
            () = until(&person, &new) => {}
        }
        before = ask(&person, &format!("SELECT pid {waits}")).await;
    }
    demand(&person, &server.url(), "").await;
    assert_eq!(soon(store.renew(session, 6, 2)).await.unwrap().value.previous, 5);
}

/// A read goes over the connection of the session, which listens as well. While the server does not answer it, the
/// session is renewed over another; and nothing is lost with it.
#[tokio::test]
async fn a_read_that_is_held_up_and_given_up_costs_no_renewal_and_no_news() {
    let server = Postgres::start();
    let (store, other) = (connect(&server.url()).await.unwrap(), connect(&server.url()).await.unwrap());
    let mut news = store.news();
    let session = open(&store, 1).await;
    win(&store, session).await;
    soon(news.next()).await.expect("it listens");
    let (mut holder, person) = (by_hand(&server.url()).await, by_hand(&server.url()).await);
    let waiting =
        format!("SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE {LOCKED} AND query LIKE '%look%')");
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE tenure.elections").await.unwrap();
    tokio::select! {
        answer = store.read(name(ELECTION)) => panic!("{answer:?}"),
        () = until(&person, &waiting) => {}
    }
    soon(store.renew(session, 2, 1)).await.unwrap();
    assert!(ask::<bool>(&person, &waiting).await, "it is renewed while the read waits");
    lock.rollback().await.unwrap();
    while news.next().now_or_never().is_some() {}
    open(&other, 2).await;
    assert_eq!(soon(news.next()).await, Some(Hint::Nodes), "it has listened all the time");
}

#[tokio::test]
async fn work_that_was_given_up_is_cancelled_and_its_transaction_undone() {
    let server = Postgres::start();
    let leadership = lead(&start(calm("a"), &server.url()).await).await;
    let person = by_hand(&server.url()).await;
    person.batch_execute("CREATE TABLE ledger (entry text)").await.unwrap();
    let work = leadership.postgres_transaction(async |transaction| {
        transaction.batch_execute("INSERT INTO ledger VALUES ('a'); SELECT pg_sleep(3600)").await
    });
    give_up(&person, work, "wait_event = 'PgSleep'", || ()).await;
    // The lease's row is not locked any more: nothing keeps a successor waiting.
    person.batch_execute("SELECT 1 FROM tenure.elections FOR UPDATE NOWAIT").await.unwrap();
    assert_eq!(ask::<i64>(&person, "SELECT count(*) FROM ledger").await, 0);
}
