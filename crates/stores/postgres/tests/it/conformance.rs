//! The promises of a store, on a real server, for a role with no more rights than are documented.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tenure_postgres::PostgresStore;
use tenure_store::{Options, Store, StoreUrl};
use tenure_testkit::conformance::Fixture;
use tenure_testkit::server::{PgBouncer, Postgres};

use crate::kit;

/// Connections by this URL. What they need is kept for as long as there are any.
fn reached(url: String, kept: impl Send + Sync + 'static) -> Fixture {
    let kept = Arc::new(kept);
    Fixture::new(move |options: Options| {
        let (url, _kept) = (url.clone(), Arc::clone(&kept));
        async move {
            let url = StoreUrl { options, ..StoreUrl::parse(&url).unwrap() };
            Arc::new(PostgresStore::connect(&url).await.unwrap()) as Arc<dyn Store>
        }
    })
}

mod directly {
    use super::*;

    /// Every check has a database of its own.
    async fn fresh(server: Arc<Postgres>) -> Fixture {
        static CHECKS: AtomicU32 = AtomicU32::new(0);
        let database = format!("check_{}", CHECKS.fetch_add(1, Ordering::Relaxed));
        let owner = kit::person(&server.url()).await;
        owner.batch_execute(&format!("CREATE DATABASE {database} TEMPLATE template0")).await.unwrap();
        let url = |user: &str| format!("postgres://{user}@{}/{database}", server.host());
        kit::connect(&url("postgres")).await.unwrap();
        kit::person(&url("postgres")).await.batch_execute(kit::GRANTS).await.unwrap();
        reached(url("app"), server)
    }

    /// Several checks at once want many connections.
    fn server() -> Postgres {
        let server = Postgres::start_with(&["fsync=off", "max_connections=500"]);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            kit::person(&server.url()).await.batch_execute("CREATE ROLE app LOGIN").await.unwrap();
        });
        server
    }

    tenure_testkit::conformance_together!(server, fresh);
}

/// A pool that gives each transaction another connection: what rests on many connections, or on more than one
/// statement. News comes past it.
mod through_a_pool {
    use super::*;

    async fn fresh() -> Fixture {
        let server = Postgres::start();
        kit::with_a_humble_role(&server).await;
        let pool = PgBouncer::before(&server);
        let url = format!("postgres://app@127.0.0.1:{}/postgres?news={}", pool.port(), server.host());
        reached(url, (pool, server))
    }

    tenure_testkit::conformance!(fresh;
        contention: many_takers_of_one_pulse_yield_exactly_one_leader, many_first_claims_yield_exactly_one_leader,
            many_processes_of_one_node_id_yield_exactly_one_session;
        dropped_futures: nothing_is_lost_when_futures_are_dropped_half_way;
        history: what_is_seen_is_already_recorded;
        identity: it_is_the_same_over_verbs_and_connections;
        news: every_transition_reaches_another_connection;
        renewal: one_renewal_keeps_a_thousand_elections;
        takeover: it_retires_the_whole_session;
        terms: they_rise_over_takeover;
    );
}
