//! The age of a pulse is how long ago the session was renewed.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Age;
use tenure_store::{Open, Store, clock};

use super::cast::{Node, holder};
use super::fixture::Fixture;

async fn age(store: &Arc<dyn Store>) -> Age {
    holder(store, "reports").await.expect("somebody leads").pulse.age
}

/// An exact one is held against the very clock that it claims to be measured on.
pub async fn an_age_grows_and_a_renewal_resets_it(fixture: Arc<Fixture>) {
    let (here, there) = (fixture.connect().await, fixture.connect().await);
    let node = Node::open(&here, "a").await;
    node.lead("reports").await;
    for _ in 0..20 {
        let before = clock::now();
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
            (Age::Told { age: first, clock }, Age::Told { age: second, clock: later }) => {
                assert!(second >= first && later >= clock, "the store's clock fell");
            }
            (Age::Unknown, Age::Unknown) => return,
            mixed => panic!("the store changed its way of telling ages: {mixed:?}"),
        }
    }
    grows_past(&there, Duration::from_millis(20)).await;
    node.expect_opened(Open { sequence: node.stamp().sequence + 1, ..node.opening() }).await;
    if let Age::Exact(reset) = age(&there).await {
        grows_past(&there, reset + Duration::from_millis(1)).await;
    }
}

async fn grows_past(store: &Arc<dyn Store>, limit: Duration) {
    while let Age::Exact(age) | Age::Told { age, .. } = age(store).await
        && age <= limit
    {
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
