//! The server's wall clock is set, forth and back. It elects nobody.

use crate::common::{Witness, ask, brief, by_hand, lead, renewals, soon, stand, start, until};
use tenure::{Reason, Term};
use tenure_testkit::checker::check_leaderships;
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::Postgres;

const HOUR: i64 = 3600;

/// Seed defect 23: there, a clock that differs makes nodes steal leases, or wait for hours.
#[tokio::test]
async fn a_servers_clock_that_is_set_an_hour_forth_and_back_changes_no_leader_and_delays_no_fail_over() {
    let server = Postgres::start_with_a_clock();
    let proxy = Proxy::before(server.port());
    let a = start(brief("a"), &server.url_by(proxy.port())).await;
    let first = lead(&a).await;
    let first_watch = Witness::of(&a, &first);
    let (b, c) = (start(brief("b"), &server.url()).await, start(brief("c"), &server.url()).await);
    let (on_b, on_c) = (stand(&b), stand(&c));
    let person = by_hand(&server.url()).await;
    until(&person, "SELECT count(*) = 2 FROM tenure.candidates").await;
    let mut before: i64 = ask(&person, "SELECT extract(epoch FROM clock_timestamp())::bigint").await;
    for step in [HOUR, 0, -HOUR, HOUR, 0] {
        server.set_clock(step);
        let now: i64 = ask(&person, "SELECT extract(epoch FROM clock_timestamp())::bigint").await;
        assert!((now - before).abs() > HOUR / 2, "its clock was set");
        before = now;
        // Longer than a ttl, in which everybody has looked more than once.
        renewals(&a, 11).await;
        assert_eq!(first.check(), Ok(Term::new(1)));
        assert!(!on_b.is_finished() && !on_c.is_finished());
    }
    // Once more, right before the leader is lost.
    server.set_clock(HOUR);
    proxy.drop_everything();
    assert_eq!(soon(first.lost()).await, Reason::Lapsed);
    let (second, node) = tokio::select! {
        second = soon(on_b) => (second.unwrap(), &b),
        second = soon(on_c) => (second.unwrap(), &c),
    };
    let told = [first_watch.tell(), Witness::of(node, &second).tell()];
    assert_eq!(check_leaderships(&told), []);
    assert_eq!(told.map(|one| one.term), [1, 2]);
}
