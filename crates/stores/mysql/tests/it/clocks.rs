//! The server's clock is set, while nodes live. It decides nothing: one term throughout.

use crate::common;
use std::time::Duration;

use crate::common::Place;
use tenure::{Node, NodeBuilder, Term};
use tenure_store::clock;
use tenure_testkit::server::MariaDb;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{ELECTION, Witness, ask, lead, renewals, soon, stand, start};

const TTL: Duration = Duration::from_secs(3);

/// It renews often: a machine that is busy with other things may let it stand still for two seconds.
fn node(id: &str) -> NodeBuilder {
    Node::builder(id).ttl(TTL).renew_every(TTL / 10)
}

/// After so many renewals a ttl has passed.
const A_TTL: u32 = 11;

/// A server in a zone with daylight saving, started with the first of these clocks, and a leader and a candidate
/// that watch it being set to the others.
async fn one_term_while(settings: &[&str], set: &[i64]) {
    let place = Place(MariaDb::start_with_a_clock(settings, set[0]));
    let (a, b) = (start(node("a"), &place.url()).await, start(node("b"), &place.url()).await);
    let leadership = lead(&a).await;
    let successor = stand(&b);
    // A candidate believes ages only after it has known the store for a ttl.
    renewals(&b, A_TTL).await;
    for seconds in &set[1..] {
        place.0.set_clock(*seconds);
        renewals(&a, 4).await;
        renewals(&b, 4).await;
        assert_eq!(leadership.check(), Ok(Term::new(1)), "set to {seconds}");
        assert!(!successor.is_finished(), "set to {seconds}");
    }
    let granted = "SELECT COUNT(*) FROM {t}events WHERE kind IN ('leader_elected', 'leader_lost')";
    assert_eq!(ask(&place, granted).await, "1");
    // And then a hand-over, on a clock that is an hour off or more.
    soon(leadership.resign()).await.unwrap();
    assert_eq!(soon(successor).await.unwrap().term(), Term::new(2));
}

/// So many seconds until this instant, from now.
fn until(unix: u64) -> i64 {
    let now = clock::wall().as_secs();
    i64::try_from(unix).unwrap() - i64::try_from(now).unwrap()
}

/// In Berlin, 2026-10-25 01:00:00 UTC is 02:00 for the second time. The lease spans that instant, and then the whole
/// hour that is repeated.
#[tokio::test]
async fn the_hour_that_is_repeated_at_the_end_of_daylight_saving() {
    let end = 1_792_890_000;
    one_term_while(&["default-time-zone=SYSTEM"], &[until(end) - 60, until(end), until(end) + 3600]).await;
}

/// Seed defect 9, on the clock that all nodes share. (A node's own wall clock is never asked.)
#[tokio::test]
async fn steps_of_an_hour_forwards_and_backwards() {
    one_term_while(&[], &[0, 3600, 0, -3600, 0]).await;
}

/// As when a battery is empty, and somebody notices.
#[tokio::test]
async fn steps_of_weeks_backwards_and_forwards() {
    const WEEKS: i64 = 3 * 7 * 24 * 3600;
    one_term_while(&[], &[0, -WEEKS, 0, WEEKS, 0]).await;
}

/// A leap second: the same second twice, or none.
#[tokio::test]
async fn leaps() {
    one_term_while(&[], &[0, -1, 0, 1, 2]).await;
}

/// A session's time zone changes what `NOW()` says, and nothing that Tenure reads.
#[tokio::test]
async fn sessions_in_other_time_zones_see_the_same_lease() {
    let place = Place::start();
    let node = start(Node::builder("a").ttl(Duration::from_secs(30)), &place.url()).await;
    let _leadership = lead(&node).await;
    let mut person = common::by_hand(&place.url()).await;
    for zone in ["+00:00", "+13:00", "-11:30"] {
        common::told(&mut person, &format!("SET time_zone = '{zone}'")).await.unwrap();
        let age = "SELECT JSON_EXTRACT(pulse, '$.age_us') < 20000000 FROM tenure_pulses";
        assert_eq!(common::told(&mut person, age).await.unwrap(), "1", "{zone}");
        let left =
            "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), expires_at) BETWEEN 1 AND 31 FROM tenure_leases";
        assert_eq!(common::told(&mut person, left).await.unwrap(), "1", "{zone}");
    }
}

/// And nodes whose sessions are each in a zone of their own, as the server tells each user's connections.
#[tokio::test]
async fn nodes_whose_sessions_are_in_different_time_zones_share_one_term() {
    let place = Place::start();
    let zones = "SET time_zone = IF(USER() LIKE 'east@%', '+13:00', '-11:30')";
    ask(&place, &format!("SET GLOBAL init_connect = \"{zones}\"")).await;
    for (user, zone) in [("east", "+13:00"), ("west", "-11:30")] {
        ask(&place, &format!("CREATE USER {user}@'%'")).await;
        ask(&place, &format!("GRANT ALL ON tenure.* TO {user}@'%'")).await;
        let mut person = common::by_hand(&place.0.url_as(user)).await;
        assert_eq!(common::told(&mut person, "SELECT @@time_zone").await.unwrap(), zone);
    }
    let east = start(node("east"), &place.0.url_as("east")).await;
    let west = start(node("west"), &place.0.url_as("west")).await;
    let leadership = lead(&east).await;
    let successor = stand(&west);
    for _ in 0..4 {
        renewals(&east, 1).await;
        renewals(&west, 1).await;
        assert_eq!(leadership.check(), Ok(Term::new(1)));
        assert!(!successor.is_finished());
    }
    soon(leadership.resign()).await.unwrap();
    assert_eq!(soon(successor).await.unwrap().term(), Term::new(2));
}

/// Safety holds while the clock runs wild, and the successor of a dead leader still comes.
#[tokio::test]
async fn a_leader_that_falls_silent_while_the_clock_is_set_is_succeeded_without_overlap() {
    let place = Place(MariaDb::start_with_a_clock(&[], 0));
    let proxy = tenure_testkit::proxy::Proxy::before(place.port());
    let far = start(node("far"), &place.url_by(proxy.port())).await;
    let near = start(node("near"), &place.url()).await;
    let first = lead(&far).await;
    let first_watch = Witness::of(&far, &first);
    let successor = stand(&near);
    renewals(&near, A_TTL).await;
    proxy.drop_everything();
    for seconds in [3600, -3600, 7200, 0] {
        place.0.set_clock(seconds);
        renewals(&near, 3).await;
    }
    let second = soon(successor).await.unwrap();
    let told = [first_watch.tell(), Witness::of(&near, &second).tell()];
    assert_eq!(tenure_testkit::checker::check_leaderships(&told), []);
    assert_eq!((told[0].term, told[1].term), (1, 2));
    assert_eq!(
        near.election(ELECTION).unwrap().leader().await.unwrap().map(|leader| leader.term),
        Some(Term::new(2))
    );
}
