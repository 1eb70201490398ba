//! The promises of a store, on three real servers: on one, an answer that is old goes unnoticed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_store::{Options, Store, StoreUrl};
use tenure_testkit::conformance::Fixture;
use tenure_testkit::server::ZooKeeper;
use tenure_zookeeper::ZooKeeperStore;

/// Every check is below a path of its own.
async fn fresh(server: Arc<ZooKeeper>) -> Fixture {
    static CHECKS: AtomicU32 = AtomicU32::new(0);
    let base = format!("{}/check-{}", server.url(), CHECKS.fetch_add(1, Ordering::Relaxed));
    Fixture::new(move |options: Options| {
        let url = StoreUrl { options, ..StoreUrl::parse(&base).unwrap() };
        async move { Ok(Arc::new(ZooKeeperStore::connect(&url).await?) as Arc<dyn Store>) }
    })
}

/// Three servers, so that what one of them has not heard yet is asked for. Patient ones: a busy machine is no
/// fault to be tested here.
fn servers() -> ZooKeeper {
    ZooKeeper::start_with(3, &["forceSync=no", "syncLimit=100"])
}

tenure_testkit::conformance_together!(servers, fresh);
