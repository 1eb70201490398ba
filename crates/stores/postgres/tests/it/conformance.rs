//! The promises of a store, on a real server, for a role with no more rights than are documented.

use crate::kit;
use std::sync::Arc;

use tenure_postgres::PostgresStore;
use tenure_store::{Options, Store, StoreUrl};
use tenure_testkit::conformance::Fixture;
use tenure_testkit::server::{PgBouncer, Postgres};

/// Connections made by a URL that this makes for the server.
async fn reached<K>(by: impl FnOnce(&Postgres) -> (String, K)) -> Fixture
where
    K: Send + Sync + 'static,
{
    let server = Postgres::start();
    kit::with_a_humble_role(&server).await;
    let (url, kept) = by(&server);
    let kept = Arc::new((kept, server));
    Fixture::new(move |options: Options| {
        let (url, _kept) = (url.clone(), Arc::clone(&kept));
        async move {
            let url = StoreUrl { options, ..StoreUrl::parse(&url).unwrap() };
            Ok(Arc::new(PostgresStore::connect(&url).await?) as Arc<dyn Store>)
        }
    })
}

mod directly {
    use super::*;

    async fn fresh() -> Fixture {
        reached(|server| (server.url_as("app"), ())).await
    }

    tenure_testkit::conformance!(fresh);
}

/// A pool that gives each transaction another connection: what rests on many connections, or on more than one
/// statement. News comes past it.
mod through_a_pool {
    use super::*;

    async fn fresh() -> Fixture {
        reached(|server| {
            let pool = PgBouncer::before(server);
            let url = format!("postgres://app@127.0.0.1:{}/postgres?news={}", pool.port(), server.host());
            (url, pool)
        })
        .await
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
