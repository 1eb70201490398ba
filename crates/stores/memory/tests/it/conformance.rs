//! The store in memory keeps every promise of the contract.

use std::sync::Arc;

use tenure_memory::MemoryStore;
use tenure_store::{Options, Store};
use tenure_testkit::conformance::Fixture;

async fn fresh() -> Fixture {
    let store = MemoryStore::new(Options::default());
    Fixture::new(move |options| {
        let connection: Arc<dyn Store> = Arc::new(store.with(options));
        std::future::ready(Ok(connection))
    })
}

tenure_testkit::conformance!(fresh);
