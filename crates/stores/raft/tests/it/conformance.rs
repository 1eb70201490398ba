//! The promises of a store, on a real group of three members on loopback; those who ask are members and clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_store::{Options, Store};
use tenure_testkit::conformance::Fixture;

use crate::kit::Trio;

async fn fresh() -> Fixture {
    let trio = Arc::new(Trio::start().await);
    let turn = Arc::new(AtomicUsize::new(0));
    Fixture::new(move |options: Options| {
        let (trio, turn) = (Arc::clone(&trio), Arc::clone(&turn));
        async move {
            // One after the other: a client, then each member in turn, whether it leads the group or not.
            Ok(match turn.fetch_add(1, Ordering::Relaxed) % 4 {
                0 => Arc::new(trio.client(options).await) as Arc<dyn Store>,
                member => Arc::new(trio.members[member - 1].with(options)),
            })
        }
    })
}

tenure_testkit::conformance!(fresh);
