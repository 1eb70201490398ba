//! Candidates that died without a word: nobody retires what holds nothing, and nobody waits for it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use crate::common::{claiming, name, open, opening, place, resigning, session, win};
use tenure_core::{NodeId, Standing};
use tenure_store::{Claim, Open, Resign, Store, clock};

#[tokio::test]
async fn a_candidate_that_has_been_silent_for_its_whole_life_is_passed_over() {
    let place = place();
    let store = place.store().await;
    let (leader, other) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, leader, "reports").await;
    let ttl = Duration::from_millis(1);
    store.open(Open { ttl, ..opening(9) }).await.unwrap();
    let opened = clock::now();
    let best = Claim { priority: 5, ..claiming(session(9), "reports") };
    assert!(matches!(store.claim(best).await.unwrap().value, Standing::Waiting { .. }));
    while clock::now() <= opened + ttl * 2 {
        tokio::task::yield_now().await;
    }
    assert!(store.candidates(name("reports")).await.unwrap().value.is_empty(), "it is dead");

    let to = Some(NodeId::new("n9").unwrap());
    store.resign(Resign { to, ..resigning(leader, "reports") }).await.unwrap();
    let standing = store.claim(claiming(other, "reports")).await.unwrap().value;
    assert!(matches!(standing, Standing::Leading { .. }), "nothing is left to the dead: {standing:?}");
}
