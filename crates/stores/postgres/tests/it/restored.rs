//! A dump that was restored into another cluster.

use tenure_core::Term;
use tenure_store::{EventQuery, Resign};
use tenure_testkit::server::Postgres;

use crate::common::{ELECTION, by_hand, claiming, connect, name, open, soon, win};

/// Transactions are numbered by each cluster for itself, so the restored history was written by numbers that are yet to
/// come in the new one.
#[tokio::test]
async fn a_history_that_was_restored_into_a_new_cluster_is_shown_in_order() {
    let old = Postgres::start();
    let store = connect(&old.url()).await.unwrap();
    let session = open(&store, 1).await;
    // Each inner block that writes is given a number of its own.
    let numbers = "CREATE TABLE numbers (n int);
        DO $$ BEGIN FOR n IN 1..20000 LOOP
            BEGIN INSERT INTO numbers VALUES (n); EXCEPTION WHEN division_by_zero THEN NULL; END;
        END LOOP; END $$;
        DROP TABLE numbers";
    by_hand(&old.url()).await.batch_execute(numbers).await.unwrap();
    assert_eq!(win(&store, session).await, Term::new(1));
    let before = soon(store.events(EventQuery::default())).await.unwrap().value;
    assert!(before.len() > 2, "{before:?}");

    let new = old.restored();
    let next = "SELECT pg_snapshot_xmax(pg_current_snapshot()) < (SELECT max(written) FROM tenure.events)";
    assert!(
        crate::common::ask::<bool>(&by_hand(&new.url()).await, next).await,
        "the numbers are yet to come"
    );
    let store = connect(&new.url()).await.unwrap();
    assert_eq!(soon(store.events(EventQuery::default())).await.unwrap().value, before);

    let resign = Resign {
        session,
        election: name(ELECTION),
        attempt: 2,
        term: None,
        to: None,
        cause: Default::default(),
    };
    soon(store.resign(resign)).await.unwrap();
    let claim = tenure_store::Claim { attempt: 3, ..claiming(session) };
    soon(store.claim(claim)).await.unwrap();
    let after = soon(store.events(EventQuery::default())).await.unwrap().value;
    assert_eq!(after[..before.len()], before, "what comes after is told after it");
    assert_eq!(after.len(), before.len() + 2, "{after:?}");
    assert!(after.is_sorted_by_key(|event| event.id));
    let last = before.last().unwrap().id;
    let rest = soon(store.events(EventQuery { after: last, ..EventQuery::default() })).await.unwrap().value;
    assert_eq!(rest, after[before.len()..], "whoever goes on misses nothing");
}
