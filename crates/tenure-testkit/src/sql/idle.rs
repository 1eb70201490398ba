//! What nodes ask of the server while nothing happens.

use std::time::Duration;

use tenure::Node;
use tenure_store::{EventQuery, clock};

use super::SqlServer;
use super::stage::{HANG, calm, lead, renewals, soon, stand, start, until};

/// So many renewals of the leader are watched at once.
const INTERVALS: usize = 4;

/// One write per interval and node: its answer tells a follower how its election is.
pub async fn idle_nodes_renew_once_per_interval_and_ask_nothing_else<S: SqlServer>() {
    let server = S::start_talkative();
    // Requests that are answered late on a busy machine are not repeated: they have a sixth of the ttl.
    let node = |id: &str| Node::builder(id).ttl(Duration::from_secs(15)).renew_every(Duration::from_secs(1));
    let a = start(node("a"), &server.url()).await;
    let leadership = lead(&a).await;
    let (b, c) = (start(node("b"), &server.url()).await, start(node("c"), &server.url()).await);
    let _standing = (stand(&b), stand(&c));
    until(&server, "SELECT COUNT(*) >= 2 FROM {t}candidates").await;
    // They have found out how often the leader renews.
    renewals(&a, 4).await;
    // On a busy machine somebody is late at times. So they are watched until nobody is.
    let mut watched = Vec::new();
    let end = clock::now() + HANG;
    while !watched.last().is_some_and(Calls::are_as_expected) {
        assert!(clock::now() < end, "they ask too much or too little: {watched:#?}");
        watched.push(Calls::of_a_few_intervals(&server, &a).await);
    }
    soon(leadership.resign()).await.unwrap();
}

/// What three nodes, of which one leads, have asked of the server in some time.
#[derive(Debug)]
struct Calls {
    renewals: usize,
    looks: usize,
    sleeps: usize,
}

impl Calls {
    async fn of_a_few_intervals<S: SqlServer>(server: &S, leader: &Node) -> Self {
        let (begun, before) = (clock::now(), server.called().len());
        renewals(leader, u32::try_from(INTERVALS).unwrap()).await;
        let called = server.called().split_off(before);
        let passed = clock::now().since(begun);
        let count = |function: &str| called.iter().filter(|called| *called == function).count();
        let calls = Self { renewals: count("renew"), looks: count("look"), sleeps: count("listen") };
        assert_eq!(calls.renewals + calls.looks + calls.sleeps, called.len(), "nothing else: {called:#?}");
        let seconds = usize::try_from(passed.as_secs()).unwrap_or(usize::MAX) + 1;
        assert!(calls.renewals <= 3 * (seconds + 1), "three nodes in {passed:?}: {calls:?}");
        calls
    }

    /// One per node and interval, and one more at the end. Nobody looks unless somebody was late. Whoever sleeps in the
    /// server until there is news turns over at times.
    fn are_as_expected(&self) -> bool {
        let (nodes, sleepers) = (3, 3);
        let renewals = INTERVALS..=nodes * (INTERVALS + 1);
        renewals.contains(&self.renewals) && self.looks == 0 && self.sleeps <= sleepers
    }
}

/// Whatever else was opened while they were busy is closed after a while.
pub async fn an_idle_node_keeps_only_the_connections_that_it_needs<S: SqlServer>() {
    let server = S::start();
    let a = start(calm("a"), &server.url()).await;
    let leadership = lead(&a).await;
    let b = start(calm("b"), &server.url()).await;
    let _standing = stand(&b);
    until(&server, "SELECT COUNT(*) >= 1 FROM {t}candidates").await;
    soon(a.store().events(EventQuery::default())).await.unwrap();
    soon(async {
        while server.connections().await != 2 * S::CONNECTIONS {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // And they are enough: both renew, and the lease is handed over.
    renewals(&a, 1).await;
    renewals(&b, 1).await;
    soon(leadership.resign()).await.unwrap();
}

/// The others learn of their new leader with their renewals.
pub async fn a_hand_over_takes_one_write_and_one_read_however_many_stand<S: SqlServer>() {
    let server = S::start_talkative();
    let leader = start(calm("leader"), &server.url()).await;
    let leadership = lead(&leader).await;
    let next = start(calm("next"), &server.url()).await;
    let elected = stand(&next);
    until(&server, "SELECT COUNT(*) >= 1 FROM {t}candidates").await;
    let mut others = Vec::new();
    for number in 0..8 {
        let other = start(calm(&format!("other {number}")), &server.url()).await;
        others.push((stand(&other), other));
    }
    until(&server, "SELECT COUNT(*) >= 9 FROM {t}candidates").await;
    for (_, other) in &others {
        renewals(other, 2).await;
    }
    let before = server.called().len();
    soon(leadership.resign()).await.unwrap();
    let successor = soon(elected).await.unwrap();
    for (_, other) in &others {
        renewals(other, 1).await;
    }
    let mut called = server.called().split_off(before);
    called.retain(|function| !["renew", "listen"].contains(&&**function));
    // Its renewal may tell the successor as well, at the same moment.
    called.dedup();
    assert_eq!(called, ["resign", "look"]);
    successor.check().unwrap();
}
