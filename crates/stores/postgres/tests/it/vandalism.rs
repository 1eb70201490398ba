//! What becomes of leaders when people take Tenure's schema apart.

use crate::common::{
    ELECTION, ask, brief, by_hand, claiming, connect, lead, misconfigured, name, open, soon, start, win,
};
use tenure::{ElectionError, Ending, Reason, Term};
use tenure_store::clock;
use tenure_testkit::server::Postgres;

/// The leader is not to blame, and leads as long as its lease allows; then a person must act, and is told.
#[tokio::test]
async fn a_leader_whose_schema_was_dropped_carries_on_to_its_deadline_and_ends_with_advice() {
    let server = Postgres::start();
    let node = start(brief("a"), &server.url()).await;
    let leadership = lead(&node).await;
    let person = by_hand(&server.url()).await;
    let due = node.held().now().until;
    // A request that is under way may have locked some of it already, and wait for the rest: a deadlock.
    soon(async { while person.batch_execute("DROP SCHEMA tenure CASCADE").await.is_err() {} }).await;
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    drop(leadership);
    let ended = soon(node.election(ELECTION).unwrap().elected()).await.unwrap_err();
    let ElectionError::Closed(Ending::Misconfigured(advice)) = &ended else { panic!("{ended:?}") };
    assert!(advice.contains("stop all nodes, restore them, and start again"), "{advice}");
    let there: bool = ask(&person, "SELECT to_regnamespace('tenure') IS NOT NULL").await;
    assert!(!there, "a running node never makes the tables again");
}

#[tokio::test]
async fn a_dropped_table_is_an_error_that_says_what_to_do_and_the_rest_can_be_looked_at() {
    let server = Postgres::start();
    let store = connect(&server.url()).await.unwrap();
    let (first, second) = (open(&store, 1).await, open(&store, 2).await);
    win(&store, first).await;
    let person = by_hand(&server.url()).await;
    person.batch_execute("DROP TABLE tenure.candidates CASCADE").await.unwrap();
    let said = misconfigured(soon(store.claim(claiming(second))).await);
    assert!(said.contains("restore them"), "{said}");
    assert_eq!(soon(store.read(name(ELECTION))).await.unwrap().value.term, Term::new(1));
}
