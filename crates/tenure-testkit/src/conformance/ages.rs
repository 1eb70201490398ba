//! The age of a pulse is how long ago the session was renewed.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{Age, Instant};
use tenure_store::{Open, Store, clock};

use super::cast::{Node, holder};
use super::fixture::Fixture;

async fn age(store: &Arc<dyn Store>) -> Age {
    holder(store, "reports").await.expect("somebody leads").pulse.age
}

/// No more than this of real time can have passed on a clock that runs as fast as clocks may, and is told in parts of a
/// millisecond.
fn at_most(elapsed: Duration) -> Duration {
    elapsed * 11 / 10 + Duration::from_millis(1)
}

/// An exact one is held against the very clock that it claims to be measured on. One that is told is counted by another
/// clock; but it is never older than the renewal by more than clocks differ, since a live leader would be retired by it.
/// One that is told too young is no danger: a candidate that waits for it also counts on its own clock.
pub async fn an_age_grows_and_a_renewal_resets_it(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let node = Node::open(&here, "a").await;
    node.lead("reports").await;
    let mut before = clock::now();
    for _ in 0..20 {
        before = clock::now();
        node.renew().await;
        let after = clock::now();
        let first = age(&there).await;
        let read_at = clock::now();
        let second = age(&there).await;
        match (first, second) {
            (Age::Exact(first), Age::Exact(second)) => {
                assert!(first <= read_at.since(before), "older than the renewal: {first:?}");
                assert!(second >= read_at.since(after), "younger than the renewal: {second:?}");
                assert!(second >= first, "the age fell without a renewal");
            }
            (Age::Told { age: first, clock: shown }, Age::Told { age: second, clock: later }) => {
                assert!(second >= first && later >= shown, "the store's clock fell");
                let (read, reread) = (read_at.since(before), clock::now().since(before));
                assert!(first <= at_most(read), "older than the renewal, by {read:?}: {first:?}");
                assert!(second <= at_most(reread), "older than the renewal, by {reread:?}: {second:?}");
                assert!(later - shown <= at_most(reread), "the store's clock ran away: {:?}", later - shown);
            }
            (Age::Unknown, Age::Unknown) => return,
            mixed => panic!("the store changed its way of telling ages: {mixed:?}"),
        }
    }
    grows_past(&there, Duration::from_millis(20), before).await;
    let before = clock::now();
    node.expect_opened(Open { sequence: node.stamp().sequence + 1, ..node.opening() }).await;
    if let Age::Exact(reset) = age(&there).await {
        grows_past(&there, reset + Duration::from_millis(1), before).await;
    }
}

/// A session that was renewed at `renewed` or later is told to be older than `limit` at some time, and not too early.
async fn grows_past(store: &Arc<dyn Store>, limit: Duration, renewed: Instant) {
    while let Age::Exact(age) | Age::Told { age, .. } = age(store).await {
        let elapsed = clock::now().since(renewed);
        assert!(age <= at_most(elapsed), "older than the renewal, by {elapsed:?}: {age:?}");
        if age > limit {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Rivals wait as long as the record says, not as long as they themselves would live.
pub async fn a_pulse_shows_the_ttl_that_its_node_asked_for(fixture: Arc<Fixture>) {
    if !fixture.candidates_judge().await {
        return;
    }
    let store = fixture.connect().await;
    for (id, ttl) in [("a", Duration::from_millis(1_234)), ("b", Duration::from_secs(86_400))] {
        let node = Node::new(&store, id);
        node.expect_opened(Open { ttl, ..node.opening() }).await;
        node.lead("reports").await;
        assert_eq!(holder(&store, "reports").await.expect("somebody leads").pulse.ttl, ttl);
        node.resign("reports").await;
    }
}
