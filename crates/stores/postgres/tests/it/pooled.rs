//! Nodes behind PgBouncer in transaction mode, which gives each transaction another connection.

use crate::common::{Witness, brief, by_hand, calm, lead, renewals, soon, stand, start, until};
use tenure::{Reason, Term};
use tenure_testkit::checker::check_leaderships;
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::{PgBouncer, Postgres};

#[tokio::test]
async fn a_pool_that_is_restarted_within_the_lease_changes_no_leader() {
    let server = Postgres::start();
    let mut pool = PgBouncer::before(&server);
    let url = format!("{}?news={}", server.url_by(pool.port()), server.host());
    let (a, b) = (start(calm("a"), &url).await, start(calm("b"), &url).await);
    let leadership = lead(&a).await;
    let successor = stand(&b);
    for _ in 0..3 {
        pool.stop();
        pool.launch();
        renewals(&a, 2).await;
        renewals(&b, 2).await;
        assert_eq!(leadership.check(), Ok(Term::new(1)));
        assert!(!successor.is_finished());
    }
    soon(leadership.resign()).await.unwrap();
    assert_eq!(soon(successor).await.unwrap().term(), Term::new(2));
}

/// No news passes a pool. It may know (`news=none`), or believe that it listens: a look finds what was
/// given up, and times what has lapsed.
async fn without_news(parameter: &str) {
    let server = Postgres::start();
    let pool = PgBouncer::before(&server);
    let proxy = Proxy::before(pool.port());
    let url = |port| format!("{}{parameter}", server.url_by(port));
    let (far, near) =
        (start(brief("far"), &url(proxy.port())).await, start(calm("near"), &url(pool.port())).await);
    let person = by_hand(&server.url()).await;
    let stands = "SELECT EXISTS (SELECT 1 FROM tenure.candidates)";

    let first = lead(&near).await;
    let first_watch = Witness::of(&near, &first);
    let second = stand(&far);
    until(&person, stands).await;
    soon(first.resign()).await.unwrap();
    let second = soon(second).await.unwrap();
    let second_watch = Witness::of(&far, &second);
    drop(first);

    let third = stand(&near);
    until(&person, stands).await;
    proxy.drop_everything();
    assert_eq!(soon(second.lost()).await, Reason::Lapsed);
    let third = soon(third).await.unwrap();
    let told = [first_watch.tell(), second_watch.tell(), Witness::of(&near, &third).tell()];
    assert_eq!(check_leaderships(&told), []);
    assert_eq!(told.map(|one| one.term), [1, 2, 3]);
}

#[tokio::test]
async fn without_news_leases_are_handed_over_and_taken_over_by_looking() {
    without_news("?news=none").await;
}

#[tokio::test]
async fn behind_a_pool_that_swallows_the_news_leases_are_handed_over_and_taken_over_by_looking() {
    without_news("").await;
}
