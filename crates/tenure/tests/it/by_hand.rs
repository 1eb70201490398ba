//! Leadership held by hand: elected, checked, resigned, handed over, dropped.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Manner, Wrapped, brief, calm, diligent, memory, soon, sqlite, start, until};
use futures_util::{FutureExt, StreamExt};
use tenure::{
    Cause, ElectionError, Ending, EventKind, EventQuery, LeaderChange, NodeId, Reason, Role, Store, Term,
    TransferError,
};

async fn holder(store: &Arc<dyn Store>) -> Option<NodeId> {
    let record = store.read("reports".try_into().unwrap()).await.unwrap().value;
    record.holder.map(|holder| holder.node)
}

#[tokio::test]
async fn the_elected_pass_their_check_and_the_store_names_them() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    assert_eq!(election.leader().await.unwrap(), None);
    let leadership = soon(election.elected()).await.unwrap();
    assert_eq!(leadership.check(), Ok(Term::new(1)));
    assert_eq!((leadership.term(), leadership.election().as_str()), (Term::new(1), "reports"));
    let leader = election.leader().await.unwrap().unwrap();
    assert_eq!((leader.node.as_str(), leader.term), ("a", Term::new(1)));
    assert_eq!(leadership.lease().session, node.session().unwrap());
    assert!(!leadership.cancellation().is_cancelled());
    assert!(leadership.lost().now_or_never().is_none());
}

#[tokio::test]
async fn one_candidacy_per_node_and_election() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let (first, second) = (node.election("reports").unwrap(), node.election("reports").unwrap());
    let leadership = soon(first.elected()).await.unwrap();
    assert!(matches!(soon(second.elected()).await, Err(ElectionError::AlreadyStanding)));
    assert!(leadership.check().is_ok(), "the refusal changes nothing");
    let other = start(calm("b"), &store).await.election("reports").unwrap();
    let standing = tokio::spawn({
        let other = other.clone();
        async move { other.elected().await }
    });
    while other.candidates().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(matches!(soon(other.elected()).await, Err(ElectionError::AlreadyStanding)));
    drop(leadership);
    assert_eq!(soon(standing).await.unwrap().unwrap().term(), Term::new(2));
}

#[tokio::test]
async fn a_node_can_ask_what_it_is_and_whom_it_follows() {
    let store = memory();
    let (a, b) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
    let (first, second) = (a.election("reports").unwrap(), b.election("reports").unwrap());
    assert_eq!(first.role().await.unwrap(), Role::Observer);
    let leadership = soon(first.elected()).await.unwrap();
    assert_eq!(first.role().await.unwrap(), Role::Leader { term: Term::new(1) });
    let standing = tokio::spawn({
        let second = second.clone();
        async move { second.elected().await }
    });
    let follows = Role::Follower { following: Some(NodeId::new("a").unwrap()), ahead: 0 };
    while second.role().await.unwrap() != follows {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    soon(leadership.resign()).await.unwrap();
    let _leads = soon(standing).await.unwrap().unwrap();
    assert_eq!(second.role().await.unwrap(), Role::Leader { term: Term::new(2) });
    assert_eq!(first.role().await.unwrap(), Role::Observer);
    soon(a.close()).await;
    assert!(matches!(first.role().await, Err(ElectionError::Closed(_))));
}

#[tokio::test]
async fn resigning_twice_is_refused_the_second_time() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let leadership = soon(election.elected()).await.unwrap();
    soon(leadership.resign()).await.unwrap();
    assert_eq!(holder(&store).await, None, "given back when `resign` returns");
    assert_eq!(leadership.check().unwrap_err().reason, Reason::Resigned);
    assert_eq!(leadership.lost().await, Reason::Resigned);
    assert_eq!(soon(leadership.resign()).await.unwrap_err().reason, Reason::Resigned);
    let again = soon(election.elected()).await.unwrap();
    assert_eq!(again.term(), Term::new(2), "while the old handle is still there");
    drop(leadership);
    assert!(again.check().is_ok(), "and its drop is no concern of the new one");
}

#[tokio::test]
async fn dropping_the_last_clone_hands_over_to_the_next_node() {
    let directory = tempfile::tempdir().unwrap();
    for store in [memory(), sqlite(&directory).await] {
        let (a, b) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
        let leadership = soon(a.election("reports").unwrap().elected()).await.unwrap();
        let election = b.election("reports").unwrap();
        let next = tokio::spawn(async move { election.elected().await });
        let clone = leadership.clone();
        drop(leadership);
        assert!(clone.check().is_ok(), "a clone still works");
        assert!(!next.is_finished());
        drop(clone);
        // The ttl is a minute: only the news of the resignation can make this quick.
        assert_eq!(soon(next).await.unwrap().unwrap().term(), Term::new(2));
    }
}

#[tokio::test]
async fn dropping_the_wait_withdraws_the_candidacy() {
    let store = memory();
    let (a, b) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
    let leadership = soon(a.election("reports").unwrap().elected()).await.unwrap();
    let election = b.election("reports").unwrap();
    let mut wait = Box::pin(election.elected());
    while election.candidates().await.unwrap().is_empty() {
        assert!(wait.as_mut().now_or_never().is_none());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(wait);
    while !election.candidates().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    soon(leadership.resign()).await.unwrap();
    assert_eq!(holder(&store).await, None, "nobody stands any more");
}

#[tokio::test]
async fn a_grant_that_nobody_waits_for_any_more_is_resigned() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    for _ in 0..50 {
        let claims = wrapped.count("claim");
        let mut wait = Box::pin(election.elected());
        let _ = wait.as_mut().now_or_never();
        until(|| wrapped.count("claim") > claims || wrapped.count("resign") > 0).await;
        drop(wait); // before or after the grant
    }
    soon(async {
        while holder(&store).await.is_some() || !election.candidates().await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert!(soon(election.elected()).await.unwrap().check().is_ok());
}

#[tokio::test]
async fn a_grant_whose_reply_was_lost_is_found_again() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    // What got no answer is repeated after some hundredths of the ttl.
    let node = start(diligent("a").ttl(Duration::from_secs(10)), &store).await;
    let election = node.election("reports").unwrap();
    wrapped.set("claim", Manner::LosesReplies);
    wrapped.set("read", Manner::LosesReplies);
    let wait = tokio::spawn({
        let election = election.clone();
        async move { election.elected().await }
    });
    until(|| wrapped.count("claim") >= 1 && wrapped.count("read") >= 2).await;
    assert!(!wait.is_finished(), "not elected by a claim that was not answered");
    wrapped.set("read", Manner::Dutiful);
    assert_eq!(soon(wait).await.unwrap().unwrap().term(), Term::new(1));
}

#[tokio::test]
async fn a_lost_leadership_must_be_dropped_before_the_node_stands_again() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let election = start(brief("a"), &store).await.election("reports").unwrap();
    let leadership = soon(election.elected()).await.unwrap();
    let clone = leadership.clone();
    let before = tenure_store::clock::now();
    wrapped.set("renew", Manner::Hangs);
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed);
    assert!(before < tenure_store::clock::now());
    assert_eq!(clone.check().unwrap_err().reason, Reason::Lapsed);
    assert!(leadership.cancellation().is_cancelled());
    wrapped.set("renew", Manner::Dutiful);
    assert!(matches!(soon(election.elected()).await, Err(ElectionError::StillStopping)));
    assert_eq!(soon(leadership.resign()).await.unwrap_err().reason, Reason::Lapsed);
    leadership.stopped();
    let again = soon(election.elected()).await.unwrap();
    assert!(again.term() > clone.term());
    assert!(clone.check().is_err(), "the old one stays lost");
}

/// What the history has of the end of its terms.
async fn ends(store: &Arc<dyn Store>) -> Vec<(EventKind, String)> {
    let ends = [EventKind::LeaderLost, EventKind::LeaderResigned];
    let history = store.events(EventQuery::default()).await.unwrap().value;
    history
        .into_iter()
        .filter(|event| ends.contains(&event.kind))
        .map(|event| (event.kind, event.data))
        .collect()
}

#[tokio::test]
async fn why_the_work_has_stopped_is_recorded() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    for cause in [Cause::ProgramExited(0), Cause::ProgramKilled(9), Cause::Resigned] {
        let leadership = soon(election.elected()).await.unwrap();
        leadership.stopped_because(cause);
        assert!(leadership.check().is_err());
        // The first cause is the one that counts.
        leadership.stopped_because(Cause::ProgramExited(1));
    }
    soon(node.close()).await;
    let told = |kind, data: &str| (kind, String::from(data));
    let expected = [
        told(EventKind::LeaderResigned, r#"{"exit_code":0}"#),
        told(EventKind::LeaderLost, r#"{"reason":"program_failed","signal":9}"#),
        told(EventKind::LeaderResigned, "{}"),
    ];
    assert_eq!(ends(&store).await, expected);
}

#[tokio::test]
async fn why_the_work_has_stopped_is_recorded_also_if_the_node_is_closed_before_its_resignation_is_through() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let node = start(calm("a"), &store).await;
    let leadership = soon(node.election("reports").unwrap().elected()).await.unwrap();
    wrapped.set("resign", Manner::Hangs);
    leadership.stopped_because(Cause::ProgramExited(3));
    soon(node.close()).await;
    let lost = (EventKind::LeaderLost, String::from(r#"{"exit_code":3,"reason":"program_failed"}"#));
    assert_eq!(ends(&store).await, [lost]);
}

#[tokio::test]
async fn leadership_goes_to_the_named_candidate() {
    let store = memory();
    let a = start(calm("a"), &store).await;
    let leadership = soon(a.election("reports").unwrap().elected()).await.unwrap();
    let mut waits = Vec::new();
    for id in ["b", "c", "d"] {
        let election = start(calm(id), &store).await.election("reports").unwrap();
        waits.push(tokio::spawn(async move { election.elected().await }));
    }
    let election = a.election("reports").unwrap();
    while election.candidates().await.unwrap().len() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    soon(leadership.transfer("c")).await.unwrap();
    let successor = soon(waits.remove(1)).await.unwrap().unwrap();
    assert_eq!(successor.term(), Term::new(2));
    assert_eq!(holder(&store).await.unwrap().as_str(), "c");
    let again = soon(leadership.transfer("b")).await.unwrap_err();
    assert!(matches!(again, TransferError::NotLeader(lost) if lost.reason == Reason::Resigned));
}

#[tokio::test]
async fn a_transfer_to_somebody_who_does_not_stand_changes_nothing() {
    let store = memory();
    let a = start(calm("a"), &store).await;
    let leadership = soon(a.election("reports").unwrap().elected()).await.unwrap();
    let error = soon(leadership.transfer("nobody")).await.unwrap_err();
    assert!(error.to_string().contains("`nobody` does not stand"), "{error}");
    let error = soon(leadership.transfer(NodeId::new("a").unwrap())).await.unwrap_err();
    assert!(matches!(error, TransferError::NotStanding { .. }), "not to itself either");
    let error = soon(leadership.transfer("")).await.unwrap_err();
    assert!(matches!(error, TransferError::Name(_)));
    assert_eq!(leadership.check(), Ok(Term::new(1)));
}

#[tokio::test]
async fn an_election_is_not_deleted_while_it_is_led_nor_twice() {
    let store = memory();
    let a = start(calm("a"), &store).await;
    let election = a.election("reports").unwrap();
    assert!(matches!(soon(election.delete()).await, Err(ElectionError::Absent)), "nobody ever stood");
    let leadership = soon(election.elected()).await.unwrap();
    assert!(matches!(soon(election.delete()).await, Err(ElectionError::Led)));
    assert!(leadership.check().is_ok());
    soon(leadership.resign()).await.unwrap();
    soon(election.delete()).await.unwrap();
    assert!(matches!(soon(election.delete()).await, Err(ElectionError::Absent)));
    let again = soon(election.elected()).await.unwrap();
    assert!(again.term() > Term::new(1), "terms outlive the election");
}

#[tokio::test]
async fn leader_and_candidates_are_told_when_the_election_is_ended() {
    let store = memory();
    let (a, b) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
    let leadership = soon(a.election("reports").unwrap().elected()).await.unwrap();
    let election = b.election("reports").unwrap();
    let wait = tokio::spawn({
        let election = election.clone();
        async move { election.elected().await }
    });
    while election.candidates().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    soon(election.delete_even_if_led()).await.unwrap();
    assert!(matches!(soon(wait).await.unwrap(), Err(ElectionError::Ended)));
    assert_eq!(soon(leadership.lost()).await, Reason::Ended);
}

#[tokio::test]
async fn a_closed_node_says_so_everywhere() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    let leadership = soon(election.elected()).await.unwrap();
    let mut changes = election.observe();
    assert_eq!(soon(changes.next()).await.unwrap().term, Term::new(1));
    let close = tokio::spawn({
        let node = node.clone();
        async move { node.close().await }
    });
    assert_eq!(soon(leadership.lost()).await, Reason::Closing);
    assert!(!close.is_finished(), "the work has not stopped yet");
    drop(leadership);
    soon(close).await.unwrap();
    soon(node.close()).await;
    let closed = |error: &ElectionError| matches!(error, ElectionError::Closed(Ending::Closed));
    assert!(closed(&soon(election.elected()).await.unwrap_err()));
    assert!(closed(&soon(election.leader()).await.unwrap_err()));
    assert!(closed(&soon(election.candidates()).await.unwrap_err()));
    assert!(closed(&soon(election.delete()).await.unwrap_err()));
    assert_eq!(node.session(), None);
    while soon(changes.next()).await.is_some() {}
    assert_eq!(soon(election.observe().next()).await, None);
    let message = soon(election.elected()).await.unwrap_err().to_string();
    assert_eq!(message, "the node is closed; start another to go on");
}

#[tokio::test]
async fn a_candidate_is_told_when_its_node_closes() {
    let store = memory();
    let (a, b) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
    let _leadership = soon(a.election("reports").unwrap().elected()).await.unwrap();
    let election = b.election("reports").unwrap();
    let wait = tokio::spawn(async move { election.elected().await });
    tokio::task::yield_now().await;
    soon(b.close()).await;
    assert!(matches!(soon(wait).await.unwrap(), Err(ElectionError::Closed(Ending::Closed))));
}

#[tokio::test]
async fn observers_see_every_change_of_leader() {
    let store = memory();
    let (a, b, c) =
        (start(calm("a"), &store).await, start(calm("b"), &store).await, start(calm("c"), &store).await);
    let mut changes = c.election("reports").unwrap().observe();
    let change = |leader: Option<&str>, term| LeaderChange {
        leader: leader.map(|id| NodeId::new(id).unwrap()),
        term: Term::new(term),
    };
    let first = soon(a.election("reports").unwrap().elected()).await.unwrap();
    assert_eq!(soon(changes.next()).await, Some(change(Some("a"), 1)));
    let mut late = c.election("reports").unwrap().observe();
    assert_eq!(soon(late.next()).await, Some(change(Some("a"), 1)), "who comes late learns the present");
    soon(first.resign()).await.unwrap();
    assert_eq!(soon(changes.next()).await, Some(change(None, 1)));
    let second = soon(b.election("reports").unwrap().elected()).await.unwrap();
    assert_eq!(soon(changes.next()).await, Some(change(Some("b"), 2)));
    drop(late);
    drop(second);
    assert_eq!(soon(changes.next()).await, Some(change(None, 2)));
}

#[tokio::test]
async fn a_node_that_is_not_eligible_observes_but_does_not_stand() {
    let store = memory();
    let node = start(calm("a").eligible(false), &store).await;
    let election = node.election("reports").unwrap();
    assert!(matches!(soon(election.elected()).await, Err(ElectionError::NotEligible)));
}

#[tokio::test]
async fn when_all_handles_are_dropped_the_session_is_closed() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    let leadership = soon(election.elected()).await.unwrap();
    drop((node, election));
    assert!(leadership.check().is_ok(), "a leadership keeps its node");
    drop(leadership);
    until(|| wrapped.count("close") > 0).await;
    // Its store, too, is let go of in the end: only ours is left.
    drop(store);
    until(|| Arc::strong_count(&wrapped) == 1).await;
}

#[tokio::test]
async fn transactions_are_carried_out_by_the_leader_only() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(&directory).await;
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    let leadership = soon(election.elected()).await.unwrap();
    let write = |tx: &tenure::sqlite::rusqlite::Transaction<'_>| {
        tx.execute_batch("CREATE TABLE IF NOT EXISTS pages (n); INSERT INTO pages VALUES (1)")?;
        tx.query_row("SELECT count(*) FROM pages", (), |row| row.get::<_, i64>(0))
    };
    assert_eq!(soon(leadership.transaction(write)).await.unwrap(), 1);
    assert_eq!(soon(leadership.transaction(write)).await.unwrap(), 2);
    soon(leadership.resign()).await.unwrap();
    let refused = soon(leadership.transaction(write)).await.unwrap_err();
    assert!(matches!(refused, tenure::TransactionError::NotLeader(_)), "{refused}");

    let other = start(calm("a"), &memory()).await.election("reports").unwrap();
    let leadership = soon(other.elected()).await.unwrap();
    let refused = soon(leadership.transaction(write)).await.unwrap_err();
    assert!(matches!(refused, tenure::TransactionError::NotSql));
}

#[tokio::test]
async fn what_is_held_is_told_as_it_changes_and_ends_with_the_node() {
    let store = memory();
    let node = start(diligent("a"), &store).await;
    let mut held = node.held();
    let first = held.now();
    assert_eq!(first.session, node.session());
    // A renewal may have come between `held` and `now`; then the same is told once more.
    let mut renewed = soon(held.changed()).await.unwrap();
    if renewed == first {
        renewed = soon(held.changed()).await.unwrap();
    }
    assert!(renewed.until > first.until, "a renewal moves the deadline");
    soon(node.close()).await;
    while let Some(last) = soon(held.changed()).await {
        assert!(last.session.is_none() || last.session == first.session);
    }
    assert_eq!(held.now().session, None);
}
