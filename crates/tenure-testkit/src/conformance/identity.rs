//! The identity of a store stays the same as long as it is the same store.

use std::sync::Arc;

use tenure_store::{Cause, EventQuery};

use super::cast::{Node, election};
use super::fixture::Fixture;

/// Every answer carries it.
pub async fn it_is_the_same_over_verbs_and_connections(fixture: Arc<Fixture>) {
    const ANSWERS: &str = "the store answers";
    let mut identities = Vec::new();
    for id in ["a", "b"] {
        let store = fixture.connect().await;
        let node = Node::new(&store, id);
        let reports = election("reports");
        identities.extend([
            store.open(node.opening()).await.expect(ANSWERS).store,
            store.renew(node.session, 2, 1).await.expect(ANSWERS).store,
            store.renew(node.session, 3, 2).await.expect(ANSWERS).store,
            store.claim(node.claim("reports")).await.expect(ANSWERS).store,
            store.read(reports.clone()).await.expect(ANSWERS).store,
            store.candidates(reports.clone()).await.expect(ANSWERS).store,
            store.elections().await.expect(ANSWERS).store,
            store.nodes().await.expect(ANSWERS).store,
            store.events(EventQuery::default()).await.expect(ANSWERS).store,
            store.resign(node.resignation("reports")).await.expect(ANSWERS).store,
            store.delete(reports, false).await.expect(ANSWERS).store,
            store.close(node.session, Cause::Resigned).await.expect(ANSWERS).store,
        ]);
    }
    identities.dedup();
    assert_eq!(identities.len(), 1, "the identity changed: {identities:?}");
}
