//! What becomes of leaders when servers, or the way to them, fail.

use crate::common;
use std::time::Duration;

use crate::common::{claiming, connect, open_for, ticking, win};
use rustix::process::Signal;
use tenure::{Reason, Term};
use tenure_core::Standing;
use tenure_store::{Store, StoreError, clock};
use tenure_testkit::checker::check_leaderships;
use tenure_testkit::cut::a_leader_that_is_cut_off_is_succeeded;
use tenure_testkit::proxy::{Direction, Proxy};
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{Witness, brief, calm, lead, renewals, soon, stand, start, until};

async fn cut_off(cut: impl Fn(&Proxy)) {
    let server = ZooKeeper::start();
    let by = |port| ticking(&server.url_by(port));
    a_leader_that_is_cut_off_is_succeeded(server.port(0), &ticking(&server.url()), by, cut).await;
}

#[tokio::test]
async fn a_leader_whose_words_are_held_longer_than_its_lease_is_succeeded_and_never_returns() {
    cut_off(Proxy::hold).await;
}

/// A partition in one direction: it hears the server, which does not hear it.
#[tokio::test]
async fn a_leader_that_is_not_heard_is_succeeded_without_overlap() {
    cut_off(|proxy| proxy.cut(Direction::ToServer)).await;
}

/// In the other direction. The servers are kept busy by its attempts to connect again, and still let its
/// session lapse.
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

/// Seed defect 36: after a reconnect to another server, leaders lead on and followers still follow.
#[tokio::test]
async fn whichever_server_is_killed_leaders_lead_on_and_followers_follow() {
    let mut servers = ZooKeeper::ensemble(3);
    let (a, b) = (start(calm("a"), &servers.url()).await, start(calm("b"), &servers.url()).await);
    let leadership = lead(&a).await;
    let successor = stand(&b);
    for number in 0..3 {
        servers.kill(number);
        renewals(&a, 2).await;
        renewals(&b, 2).await;
        assert_eq!(leadership.check(), Ok(Term::new(1)));
        assert!(!successor.is_finished());
        servers.launch(number);
    }
    soon(leadership.resign()).await.unwrap();
    assert_eq!(soon(successor).await.unwrap().term(), Term::new(2), "and b still follows");
}

#[tokio::test]
async fn without_a_quorum_a_leader_leads_to_its_deadline_and_with_one_somebody_leads_again() {
    let mut servers = ZooKeeper::ensemble(3);
    // However long the servers take to start again: its lease is longer.
    let (patient, url) = (calm("a").ttl(Duration::from_secs(300)), ticking(&servers.url()));
    let (steady, hasty) = (start(patient, &url).await, start(brief("b"), &url).await);
    let outlasts = lead(&steady).await;
    let billing = hasty.election("billing").unwrap();
    let lapses = soon(billing.elected()).await.unwrap();
    servers.kill(0);
    servers.kill(1);
    let due = hasty.held().now().until;
    assert_eq!(soon(lapses.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    drop(lapses);
    let again = tokio::spawn(async move { billing.elected().await.unwrap() });
    servers.spawn(0);
    servers.launch(1);
    assert_eq!(soon(again).await.unwrap().term(), Term::new(2));
    // The outage was shorter than its lease, and changed nothing.
    renewals(&steady, 1).await;
    assert_eq!(outlasts.check(), Ok(Term::new(1)));
}

/// The new leader of the ensemble begins to count all sessions anew; the old one wakes up and expires them
/// all, which nobody believes any more.
#[tokio::test]
async fn an_ensemble_leader_that_stops_for_longer_than_sessions_live_makes_no_second_leader() {
    let servers = ZooKeeper::ensemble(3);
    let url = ticking(&servers.url());
    let (a, b) = (start(brief("a"), &url).await, start(brief("b"), &url).await);
    let first = lead(&a).await;
    let mut watches = vec![Witness::of(&a, &first)];
    let successor = stand(&b);
    let stopped = servers.leader().unwrap();
    servers.signal(stopped, Signal::STOP);
    until(async || servers.leader().is_some_and(|leader| leader != stopped)).await;
    // Longer than a session lives without a sign of life: when it wakes up, all of them are over by its count.
    tokio::time::sleep(Duration::from_secs(6)).await;
    servers.signal(stopped, Signal::CONT);
    // Either a has kept its term, or b gets another one: that depends on how soon the new leader was elected.
    let held = a.held().now().until;
    until(async || first.check().is_err() || a.held().now().until > held).await;
    if first.check().is_err() {
        let second = soon(successor).await.unwrap();
        watches.push(Witness::of(&b, &second));
    }
    let told: Vec<_> = watches.into_iter().map(Witness::tell).collect();
    assert_eq!(check_leaderships(&told), []);
}

/// What was told is on disk: so neither a term nor a holder is forgotten.
#[tokio::test]
async fn a_server_that_is_killed_and_launched_again_goes_on_with_rising_terms() {
    let mut server = ZooKeeper::ensemble(1);
    let node = start(calm("a"), &server.url()).await;
    for term in 1..=3 {
        let leadership = lead(&node).await;
        server.kill(0);
        server.launch(0);
        renewals(&node, 1).await;
        assert_eq!(leadership.check(), Ok(Term::new(term)));
        soon(leadership.resign()).await.unwrap();
    }
}

/// Its node is unwell, say, and does not want to lead any more, but its work does not stop. The connection
/// lives, and with it the session of ZooKeeper, if nobody ends it.
#[tokio::test]
async fn a_session_that_is_not_renewed_lapses_though_its_connection_lives() {
    /// Long enough to claim in, on a busy machine too.
    const LIFE: Duration = Duration::from_secs(5);
    let server = ZooKeeper::start();
    let (here, there) = (connect(&server.url()).await.unwrap(), connect(&server.url()).await.unwrap());
    let began = clock::now();
    let silent = open_for(&here, 1, LIFE).await;
    assert_eq!(win(&here, silent).await, Term::new(1));
    let next = open_for(&there, 2, Duration::from_secs(30)).await;
    until(async || matches!(there.claim(claiming(next)).await.unwrap().value, Standing::Leading { .. }))
        .await;
    assert!(clock::now().since(began) >= LIFE, "not before its time");
    let renewal = here.renew(silent, 2, 1).await;
    assert!(matches!(renewal, Err(StoreError::SessionLost)), "{renewal:?}");
}

/// Slow is not dead.
#[tokio::test]
async fn a_slow_way_to_the_server_changes_no_leader() {
    let server = ZooKeeper::start();
    let proxy = Proxy::before(server.port(0));
    let node = start(calm("a"), &server.url_by(proxy.port())).await;
    let leadership = lead(&node).await;
    proxy.delay(Duration::from_millis(150), Duration::from_millis(150));
    renewals(&node, 4).await;
    proxy.reset();
    renewals(&node, 2).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
}

/// How long a tick is can only be asked with a short session, for which such a server is too slow.
#[tokio::test]
async fn a_server_that_needs_seconds_to_answer_lets_nodes_in() {
    let server = ZooKeeper::start();
    let proxy = Proxy::before(server.port(0));
    let store = connect(&server.url_by(proxy.port())).await.unwrap();
    proxy.delay(Duration::from_millis(850), Duration::from_millis(850));
    let lease = common::granted(&store, 1, Duration::from_secs(300)).await.unwrap();
    assert!(lease > Duration::from_secs(200), "{lease:?} of 300 s");
}

/// The life of a session is what the servers grant, and a lease is shorter than that.
#[tokio::test]
async fn the_lease_comes_from_the_negotiated_time_out() {
    let server =
        ZooKeeper::start_with(1, &["forceSync=no", "minSessionTimeout=5000", "maxSessionTimeout=8000"]);
    let store = connect(&server.url()).await.unwrap();
    let lease = common::granted(&store, 1, Duration::from_secs(1)).await.unwrap();
    assert!(lease > Duration::from_secs(1) && lease < Duration::from_secs(5), "{lease:?} of 5 s");
    let problem = common::granted(&store, 2, Duration::from_secs(60)).await.unwrap_err();
    assert!(matches!(problem, StoreError::Misconfigured(_)), "{problem:?}");
    assert!(problem.to_string().contains("no more than 8s"), "{problem}");
}
