//! What nodes ask of the server while nothing happens.

use std::time::Duration;

use tenure::Node;
use tenure_store::clock;

use super::SqlServer;
use super::stage::{lead, renewals, soon, stand, start, until};

/// One write per interval and node, and one look per follower at each of the leader's renewals; more only where
/// that was late.
pub async fn idle_nodes_renew_and_look_once_per_interval_and_do_nothing_else<S: SqlServer>() {
    const INTERVALS: usize = 8;
    let server = S::start_talkative();
    let node = |id: &str| Node::builder(id).ttl(Duration::from_secs(3));
    let a = start(node("a"), &server.url()).await;
    let leadership = lead(&a).await;
    let (b, c) = (start(node("b"), &server.url()).await, start(node("c"), &server.url()).await);
    let _standing = (stand(&b), stand(&c));
    until(&server, "SELECT COUNT(*) >= 2 FROM {t}candidates").await;
    // They have found out how often the leader renews.
    renewals(&a, 4).await;
    let (begun, before) = (clock::now(), server.called().len());
    let mut renewed_at = Vec::new();
    for _ in 0..INTERVALS {
        renewals(&a, 1).await;
        renewed_at.push(clock::now());
    }
    let called = server.called().split_off(before);
    // Not all of them are late when the leader is: what each does is held against the time that has passed.
    let passed = clock::now().since(begun);
    let intervals = usize::try_from(passed.as_secs()).unwrap_or(usize::MAX) + 1;
    soon(leadership.resign()).await.unwrap();
    let count = |function: &str| called.iter().filter(|called| *called == function).count();
    // Whoever sleeps in the server until there is news turns over at times.
    let (renewed, looked, slept) = (count("renew"), count("look"), count("listen"));
    assert_eq!(renewed + looked + slept, called.len(), "nothing else: {called:#?}");
    assert!(slept <= 3 * intervals.div_ceil(INTERVALS), "{slept} sleeps of three nodes in {passed:?}");
    assert!(renewed <= 3 * (intervals + 1), "{renewed} renewals of three nodes in {passed:?}");
    // On a busy machine the leader is late at times, and is looked at again after as long as it is late.
    let beats: Vec<_> = renewed_at.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    let again: u32 = beats.windows(2).map(|pair| doublings(pair[1].abs_diff(pair[0]))).sum();
    let most = 2 * (intervals + 1) * 3 / 2 + 4 * again as usize;
    assert!(looked <= most, "{looked} looks of two followers in {INTERVALS} intervals: {beats:?}");
    assert!(renewed >= INTERVALS && looked >= INTERVALS, "the log tells: {renewed} renewals, {looked} looks");
}

/// How often two milliseconds, which is when a follower looks first, are doubled until they are as long as that.
fn doublings(late: Duration) -> u32 {
    (late.as_millis() / 2 + 1).ilog2()
}
