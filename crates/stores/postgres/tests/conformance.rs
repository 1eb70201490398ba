//! The promises of a store, on a real server, for a role with no more rights than are documented.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod kit;

use std::sync::Arc;

use tenure_postgres::PostgresStore;
use tenure_store::{Options, Store, StoreUrl};
use tenure_testkit::conformance::Fixture;
use tenure_testkit::server::Postgres;

async fn fresh() -> Fixture {
    let server = Arc::new(Postgres::start());
    kit::with_a_humble_role(&server).await;
    Fixture::new(move |options: Options| {
        let server = Arc::clone(&server);
        async move {
            let url = StoreUrl { options, ..StoreUrl::parse(&server.url_as("app")).unwrap() };
            Arc::new(PostgresStore::connect(&url).await.unwrap()) as Arc<dyn Store>
        }
    })
}

tenure_testkit::conformance!(fresh);
