//! What the ZooKeeper library that Tenure learned from gets wrong (defects 30 to 36), and Tenure must not.
//! That a reconnect to another server keeps everybody in place is shown in `faults.rs`.

use std::time::Duration;

use crate::common::{claiming, connect, line, name, open_for, person, win};
use tenure::{ElectionError, Reason, Term};
use tenure_core::Standing;
use tenure_store::{Claim, Deletion, Resign, Store, StoreError};
use tenure_testkit::proxy::Proxy;
use tenure_testkit::server::ZooKeeper;
use tenure_testkit::stage::{ELECTION, calm, lead, renewals, soon, stand, start, until};

const LONG: Duration = Duration::from_secs(60);

/// 30: it had a channel that never said anything.
#[tokio::test]
async fn a_leader_is_told_that_it_lost_and_why() {
    let server = ZooKeeper::start();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    // Somebody else ends the session, as the guardian of a dead process does.
    let store = connect(&server.url()).await.unwrap();
    store.close(node.session().unwrap(), Default::default()).await.unwrap();
    let reason = soon(leadership.lost()).await;
    assert!(matches!(reason, Reason::SessionLost | Reason::Superseded), "whichever it saw first: {reason:?}");
    assert!(leadership.check().is_err());
}

/// 31: it was deaf after the first session event.
#[tokio::test]
async fn a_follower_hears_of_its_predecessor_after_any_number_of_session_events() {
    let server = ZooKeeper::start();
    let proxy = Proxy::before(server.port(0));
    let a = start(calm("a"), &server.url()).await;
    let b = start(calm("b"), &server.url_by(proxy.port())).await;
    let leadership = lead(&a).await;
    let successor = stand(&b);
    let person = person(&server).await;
    until(async || line(&person).await.len() == 2).await;
    for _ in 0..3 {
        proxy.reset();
        renewals(&b, 1).await;
    }
    // Nobody polls here within the ttl of 30 s, so what wakes it is the watch.
    soon(leadership.resign()).await.unwrap();
    assert_eq!(soon(successor).await.unwrap().term(), Term::new(2));
}

/// 32: an ownerless first place blocked the election.
#[tokio::test]
async fn a_candidate_whose_creation_is_not_answered_finds_its_place_again() {
    let server = ZooKeeper::start();
    let proxy = Proxy::before(server.port(0));
    let store = connect(&server.url_by(proxy.port())).await.unwrap();
    let session = open_for(&store, 1, LONG).await;
    let person = person(&server).await;
    for lost in 0..5 {
        let election = format!("e{lost}");
        let path = format!("/tenure/default/lines/{election}");
        proxy.lose_replies();
        let claim = Claim { election: name(&election), ..claiming(session) };
        // The reads before the create are lost as often as the create itself: either is fine.
        let claimed = tokio::time::timeout(Duration::from_millis(300), store.claim(claim.clone())).await;
        assert!(claimed.is_err(), "the answer was lost");
        proxy.pass();
        proxy.reset();
        let claim = Claim { attempt: 2, ..claim };
        until(async || match store.claim(claim.clone()).await {
            Ok(told) => matches!(told.value, Standing::Leading { term } if term == Term::new(1)),
            Err(StoreError::Indeterminate(_) | StoreError::Unavailable(_)) => false,
            Err(error) => panic!("{error}"),
        })
        .await;
        assert_eq!(person.list_children(&path).await.unwrap().len(), 1, "one candidate, one place");
    }
}

/// 33: the error was swallowed, and a leader that had resigned stayed first in line.
#[tokio::test]
async fn a_resignation_that_the_connection_cut_off_is_completed_when_it_is_back() {
    let server = ZooKeeper::start();
    let proxy = Proxy::before(server.port(0));
    let a = start(calm("a"), &server.url_by(proxy.port())).await;
    let b = start(calm("b"), &server.url()).await;
    let leadership = lead(&a).await;
    let successor = stand(&b);
    let person = person(&server).await;
    until(async || line(&person).await.len() == 2).await;
    proxy.refuse();
    proxy.reset();
    let resigning = tokio::spawn({
        let leadership = leadership.clone();
        async move { leadership.resign().await }
    });
    until(async || leadership.check().is_err()).await;
    assert!(!resigning.is_finished(), "it does not say that it is done before it is");
    assert!(!successor.is_finished());
    proxy.pass();
    soon(resigning).await.unwrap().unwrap();
    assert_eq!(soon(successor).await.unwrap().term(), Term::new(2));
}

/// 34: it panicked.
#[tokio::test]
async fn to_resign_or_to_end_twice_is_answered() {
    let server = ZooKeeper::start();
    let node = start(calm("a"), &server.url()).await;
    let leadership = lead(&node).await;
    soon(leadership.resign()).await.unwrap();
    let again = soon(leadership.resign()).await;
    assert!(again.is_err(), "it leads no more");
    let election = node.election(ELECTION).unwrap();
    soon(election.delete()).await.unwrap();
    let twice = soon(election.delete()).await;
    assert!(matches!(twice, Err(ElectionError::Absent)), "{twice:?}");
    soon(node.close()).await;
    let closed = soon(election.elected()).await;
    assert!(closed.is_err(), "an instance that is closed answers with an error");

    let store = connect(&server.url()).await.unwrap();
    let session = open_for(&store, 1, LONG).await;
    win(&store, session).await;
    for attempt in [2, 2, 3] {
        let resign = Resign {
            session,
            election: name(ELECTION),
            attempt,
            term: None,
            to: None,
            cause: Default::default(),
        };
        store.resign(resign).await.unwrap();
    }
}

/// 35: anybody could delete a live election, and nothing told an old leader from a new one.
#[tokio::test]
async fn a_live_election_is_ended_only_with_force_and_newcomers_of_before_are_refused() {
    let server = ZooKeeper::start();
    let (a, b) = (start(calm("a"), &server.url()).await, start(calm("b"), &server.url()).await);
    let leadership = lead(&a).await;
    let election = b.election(ELECTION).unwrap();
    let waits = tokio::spawn({
        let election = b.election(ELECTION).unwrap();
        async move { election.elected().await.map(|_| ()) }
    });
    let person = person(&server).await;
    until(async || line(&person).await.len() == 2).await;
    assert!(soon(election.delete()).await.is_err(), "somebody leads");
    assert_eq!(leadership.check(), Ok(Term::new(1)));
    soon(election.delete_even_if_led()).await.unwrap();
    assert_eq!(soon(leadership.lost()).await, Reason::Ended);
    let told = soon(waits).await.unwrap();
    assert!(matches!(told, Err(ElectionError::Ended)), "the follower is told too: {told:?}");
    drop(leadership);
    let next = lead(&b).await;
    assert_eq!(next.term(), Term::new(3), "the end has a number of its own");
    let store = connect(&server.url()).await.unwrap();
    assert_eq!(store.delete(name(ELECTION), false).await.unwrap().value, Deletion::Led);
}
