//! The server's disk is full.

use tenure::{Reason, Term};
use tenure_core::Standing;
use tenure_store::{Claim, StoreError, clock};

use super::SqlServer;
use super::stage::{ask, brief, connect, lead, name, open, soon, stand, start};

pub async fn what_finds_no_room_is_refused_in_words_and_granted_when_there_is<S: SqlServer>() {
    let mut server = S::start_on_a_small_disk();
    let store = connect(&server).await.unwrap();
    let session = open(&store, 1).await;
    server.fill_the_disk();
    let mut claims = (1..).map(|number| Claim::plain(session, name(&format!("election-{number}")), number));
    // Some more fit into what the tables have.
    let (refused, problem) = loop {
        let claim = claims.next().unwrap();
        match soon(store.claim(claim.clone())).await {
            Ok(told) => assert!(matches!(told.value, Standing::Leading { .. }), "{told:?}"),
            Err(problem) => break (claim, problem),
        }
    };
    assert!(matches!(problem, StoreError::Unavailable(_)), "{problem:?}");
    assert!(problem.to_string().contains(S::NO_ROOM), "{problem}");
    let elections = soon(store.elections()).await.unwrap().value;
    assert!(elections.iter().all(|(election, _)| *election != refused.election), "nothing changed");
    soon(store.renew(session, 2, 1)).await.expect("a renewal needs no more room than it has");
    soon(server.free_the_disk()).await;
    let granted = soon(store.claim(refused)).await.unwrap().value;
    assert!(matches!(granted, Standing::Leading { term } if term == Term::new(1)), "{granted:?}");
}

/// A database whose own log finds no room gives up altogether, or waits until there is some.
pub async fn a_leader_whose_servers_log_finds_no_room_steps_down_and_leads_again_under_a_higher_term<
    S: SqlServer,
>() {
    let mut server = S::start_logging_on_a_small_disk();
    let node = start(brief("a"), &server.url()).await;
    let leadership = lead(&node).await;
    server.fill_the_disk();
    let due = node.held().now().until;
    soon(server.exhaust_the_log()).await;
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed);
    assert!(clock::now() >= due, "not before its deadline");
    drop(leadership);
    let again = stand(&node);
    soon(server.free_the_disk()).await;
    let again = soon(again).await.unwrap();
    assert!(again.check().unwrap() > Term::new(1));
    let repeated = "SELECT COUNT(*) - COUNT(DISTINCT term) FROM {t}events WHERE kind = 'leader_elected'";
    assert_eq!(ask(&server, repeated).await, "0", "no term was granted twice");
}
