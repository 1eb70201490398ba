//! A primary, and a replica that did not hear of everything.

use std::time::Duration;

use tenure::{Node, Reason, Term};
use tenure_store::{StoreError, clock};

use super::SqlServer;
use super::stage::{calm, connect, lead, renewals, soon, stand, start, until};

const TTL: Duration = Duration::from_secs(3);

/// Rule 10: the leader steps down, candidates wait a full ttl from first sight, and the next term is above
/// the highest that anybody has seen; although the database has forgotten two of them.
pub async fn a_promoted_replica_that_missed_terms_repeats_none_and_nobody_leads_too_early<S: SqlServer>() {
    let mut primary = S::start_primary();
    drop(connect(&primary).await.unwrap());
    let mut replica = primary.replica().await;
    let both = primary.url_with(&replica);
    // They renew often: a machine that is busy with other things may let them stand still for two seconds.
    let node = |id: &str| Node::builder(id).ttl(TTL).renew_every(TTL / 10);
    let (a, b) = (start(node("a"), &both).await, start(node("b"), &both).await);
    let first = lead(&a).await;
    assert_eq!(first.term(), Term::new(1));
    soon(replica.catch_up(&primary)).await;
    // Nothing reaches it any more.
    replica.stop();
    soon(first.resign()).await.unwrap();
    soon(lead(&a).await.resign()).await.unwrap();
    let third = lead(&a).await;
    assert_eq!(third.term(), Term::new(3));
    let successor = stand(&b);
    until(&primary, "SELECT COUNT(*) FROM {t}candidates").await;
    // It has been answered by now, so it has seen the third term.
    renewals(&b, 6).await;
    primary.kill();
    replica.launch();
    let promoting = clock::now();
    replica.promote().await;
    let reason = soon(third.lost()).await;
    let expected = matches!(
        reason,
        Reason::StoreChanged | Reason::SessionLost | Reason::StoreRolledBack | Reason::Lapsed
    );
    assert!(expected, "{reason}");
    drop(third);
    let next = soon(successor).await.unwrap();
    assert!(next.term() > Term::new(3), "term {} was granted before", next.term());
    let waited = clock::now().since(promoting);
    assert!(waited >= TTL, "only {waited:?} after it could be seen first: less than a ttl");
}

/// It may become one at any time, so whoever can wait does.
pub async fn a_replica_is_no_store_until_it_is_promoted_and_beside_its_primary_passed_over<S: SqlServer>() {
    let primary = S::start_primary();
    drop(connect(&primary).await.unwrap());
    let replica = primary.replica().await;
    let problem = connect(&replica).await.err().expect("it is refused");
    assert!(matches!(problem, StoreError::Unavailable(_)), "{problem:?}");
    let said = problem.to_string();
    assert!(said.contains("does not allow writes") && said.contains("name the primary too"), "{said}");
    let node = start(calm("a"), &replica.url_with(&primary)).await;
    assert_eq!(lead(&node).await.term(), Term::new(1));
    soon(replica.catch_up(&primary)).await;
    replica.promote().await;
    drop(connect(&replica).await.unwrap());
}
