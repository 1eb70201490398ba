//! The store in a SQLite file keeps every promise of the contract.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use tenure_sqlite::SqliteStore;
use tenure_store::Store;
use tenure_testkit::conformance::Fixture;

async fn fresh() -> Fixture {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    Fixture::new(move |options| {
        let dir = Arc::clone(&dir);
        async move {
            let store = SqliteStore::open(dir.path().join("tenure.db"), options).await?;
            Ok(Arc::new(store) as Arc<dyn Store>)
        }
    })
}

tenure_testkit::conformance!(fresh);
