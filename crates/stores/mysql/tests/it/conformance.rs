//! The promises of a store, on a real server, for a user with no more rights than are documented.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{FAST, GRANTS, Place};
use tenure_store::{Options, StoreUrl};
use tenure_testkit::conformance::Fixture;
use tenure_testkit::patient::until_available;
use tenure_testkit::server::MariaDb;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::ask;

/// Every check has a database of its own.
async fn fresh(place: Arc<Place>) -> Fixture {
    static CHECKS: AtomicU32 = AtomicU32::new(0);
    let database = format!("check_{}", CHECKS.fetch_add(1, Ordering::Relaxed));
    let url = |user: &str| format!("mysql://{user}@127.0.0.1:{}/{database}", place.0.port());
    ask(&*place, &format!("CREATE DATABASE {database}")).await;
    let owner = StoreUrl::parse(&url("owner")).unwrap();
    drop(until_available(async || Place::connect(owner.clone()).await).await.unwrap());
    ask(&*place, "CREATE USER IF NOT EXISTS app@'%'").await;
    for line in GRANTS.lines().filter(|line| line.starts_with("GRANT")) {
        ask(&*place, &line.replace(" tenure.", &format!(" {database}."))).await;
    }
    let url = url("app");
    Fixture::new(move |options: Options| {
        let (url, _place) = (url.clone(), Arc::clone(&place));
        async move { Place::connect(StoreUrl { options, ..StoreUrl::parse(&url).unwrap() }).await }
    })
}

/// All checks at once want many connections. And a server may be told to cut short whatever it gathers.
fn server() -> Place {
    Place(MariaDb::start_with(&[FAST, "max-connections=2000", "group-concat-max-len=4"]))
}

tenure_testkit::conformance_together!(server, fresh);
