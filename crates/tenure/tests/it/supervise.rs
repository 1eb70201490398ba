//! Supervised work: started, restarted and stopped as it should be, and never under a lease that is gone.

use crate::common;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::children::{Log, OnDrop, all_run, diligent, hasty, lines, reaches};
use crate::common::{Manner, Wrapped, brief, calm, memory, soon, start, steady, until, until_blocking};
use tenure::{
    Child, ChildHealth, ChildSpec, ElectionError, Ending, NodeEvent, Reason, SupervisorState,
    SupervisorStatus, Term,
};
use tenure_store::clock;

#[tokio::test]
async fn children_start_in_order_stop_in_reverse_and_only_then_the_lease_is_given_back() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let book = Log::default();
    let mut supervise = election.supervise();
    for name in ["first", "second", "third"] {
        supervise = supervise.child(name, diligent(&book));
    }
    let supervisor = supervise.start().unwrap();
    let status = reaches(&supervisor, all_run).await;
    assert_eq!((status.state, status.term), (SupervisorState::Leading, Some(Term::new(1))));
    until(|| lines(&book).len() == 3).await;
    let seen = Arc::clone(&wrapped);
    let watched = Arc::clone(&book);
    let early = tokio::spawn(async move {
        until(|| seen.count("resign") > 0).await;
        lines(&watched)
    });
    soon(supervisor.stop()).await.unwrap();
    let whole = ["+first", "+second", "+third", "-third", "-second", "-first"];
    assert_eq!(lines(&book), whole);
    assert_eq!(soon(early).await.unwrap(), whole, "all had ended when the store was told");
    let record = store.read("reports".try_into().unwrap()).await.unwrap().value;
    assert_eq!(record.holder, None, "given back before `stop` returned");
    assert_eq!(supervisor.status().state, SupervisorState::Ended);
    assert!(supervisor.status().children.iter().all(|child| child.health == ChildHealth::Idle));
}

#[tokio::test]
async fn a_child_that_says_when_it_is_up_holds_those_behind_it_back() {
    let election = start(calm("a"), &memory()).await.election("reports").unwrap();
    let (book, go) = (Log::default(), Arc::new(tokio::sync::Notify::new()));
    let gate = Arc::clone(&go);
    let slow = ChildSpec::new("slow", move |child: Child| {
        let gate = Arc::clone(&gate);
        async move {
            gate.notified().await;
            child.ready();
            child.told_to_stop().await;
            Ok::<_, String>(())
        }
    });
    let within = Duration::from_secs(10);
    let supervise = election.supervise().restarts(5, 10 * within).with(slow.start_within(within));
    let supervisor = supervise.child("next", diligent(&book)).start().unwrap();
    let status = reaches(&supervisor, |now| now.children[0].health == ChildHealth::Starting).await;
    assert_eq!(status.children[1].health, ChildHealth::Idle);
    assert_eq!(lines(&book), [""; 0]);
    go.notify_one();
    reaches(&supervisor, all_run).await;
    soon(supervisor.stop()).await.unwrap();
    assert_eq!(lines(&book), ["+next", "-next"]);
}

#[tokio::test]
async fn a_child_that_fails_panics_or_returns_is_restarted_alone_and_says_why() {
    let election = start(calm("a"), &memory()).await.election("reports").unwrap();
    let (book, lives) = (Log::default(), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&lives);
    let clumsy = move |child: Child| {
        let life = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            match life {
                0 => Err("no paper"),
                1 => panic!("out of ink"),
                2 => Ok(()),
                _ => {
                    child.told_to_stop().await;
                    Ok(())
                }
            }
        }
    };
    let supervise = hasty(election.supervise()).restarts(3, Duration::from_secs(60));
    let supervisor = supervise.child("steady", diligent(&book)).child("clumsy", clumsy).start().unwrap();
    let mut watch = supervisor.watch();
    let mut errors = Vec::new();
    while supervisor.status().children[1].restarts < 3 || !all_run(&supervisor.status()) {
        soon(watch.changed()).await.unwrap();
        let error = watch.borrow_and_update().children[1].last_error.clone();
        if errors.last() != error.as_ref() {
            errors.extend(error);
        }
    }
    assert_eq!(errors.last().unwrap(), "it returned", "of {errors:?}");
    for error in &errors {
        assert!(["no paper", "it panicked: out of ink", "it returned"].contains(&error.as_str()), "{error}");
    }
    let steady = supervisor.status().children[0].clone();
    assert_eq!((steady.restarts, steady.last_error), (0, None));
    assert_eq!(lines(&book), ["+steady"], "nobody touched it");
    assert_eq!(supervisor.status().term, Some(Term::new(1)));
}

#[tokio::test]
async fn work_that_fails_too_often_is_given_up_with_a_reason_and_another_node_takes_it() {
    let store = memory();
    let (bad, good) = (start(calm("bad"), &store).await, start(calm("good"), &store).await);
    let mut events = bad.subscribe();
    let supervise = hasty(bad.election("reports").unwrap().supervise()).pause(common::HANG);
    let broken = |_: Child| async { Err::<(), _>("no such table") };
    let book = Log::default();
    let failing = supervise.child("steady", diligent(&book)).child("broken", broken).start().unwrap();
    reaches(&failing, |now| now.state == SupervisorState::Leading).await;
    let next = good.election("reports").unwrap().supervise().child("broken", diligent(&Log::default()));
    let next = next.start().unwrap();
    let status = reaches(&next, all_run).await;
    assert_eq!(status.term, Some(Term::new(2)), "the other node is next");

    let status = reaches(&failing, |now| now.state == SupervisorState::Pausing).await;
    let broken = &status.children[1];
    assert_eq!((broken.health, broken.restarts), (ChildHealth::Failed, 2));
    assert_eq!(broken.last_error.as_deref(), Some("no such table"));
    assert_eq!(status.children[0].health, ChildHealth::Idle);
    assert_eq!(lines(&book), ["+steady", "-steady"]);
    let resigned = loop {
        if let NodeEvent::LeaderResigned { reason, term, .. } = soon(events.next()).await.unwrap() {
            break (reason, term);
        }
    };
    assert_eq!(resigned, (Reason::WorkFailed, Term::new(1)));
}

#[tokio::test]
async fn a_node_that_gave_its_work_up_stands_again_after_its_pause() {
    let election = start(calm("a"), &memory()).await.election("reports").unwrap();
    let terms = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&terms);
    let broken = move |child: Child| {
        seen.lock().unwrap().push(child.check().unwrap());
        async { Err::<(), _>("always") }
    };
    let supervise = hasty(election.supervise()).pause(Duration::from_millis(50));
    let supervisor = supervise.child("broken", broken).start().unwrap();
    until(|| terms.lock().unwrap().len() >= 6).await;
    let terms = terms.lock().unwrap().clone();
    assert_eq!(terms[..6], [1, 1, 1, 2, 2, 2].map(Term::new), "once and two restarts per term");
    soon(supervisor.stop()).await.unwrap();
}

#[tokio::test]
async fn a_leader_whose_child_never_comes_up_does_not_go_on_leading() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let book = Log::default();
    let wedged = ChildSpec::new("wedged", |_: Child| std::future::pending::<Result<(), String>>());
    let supervise =
        hasty(election.supervise()).pause(common::HANG).with(wedged.start_within(Duration::from_millis(20)));
    let supervisor = supervise.child("behind", diligent(&book)).start().unwrap();
    let status = reaches(&supervisor, |now| now.state == SupervisorState::Pausing).await;
    assert_eq!(status.children[0].health, ChildHealth::Failed);
    assert_eq!(status.children[0].last_error.as_deref(), Some("it did not come up within 20ms"));
    assert_eq!(lines(&book), [""; 0], "what is behind it was never started");
    let rival = start(calm("b"), &store).await.election("reports").unwrap();
    assert_eq!(soon(rival.elected()).await.unwrap().term(), Term::new(2), "without waiting for the ttl");
}

#[tokio::test]
async fn a_child_that_does_not_stop_is_aborted_after_its_time_and_the_next_is_stopped() {
    let election = start(calm("a").grace(Duration::ZERO), &memory()).await.election("reports").unwrap();
    let book = Log::default();
    let shared = Arc::clone(&book);
    let stubborn = ChildSpec::new("stubborn", move |_: Child| {
        let end = OnDrop(Arc::clone(&shared), String::from("-stubborn"));
        async move {
            let _end = end;
            std::future::pending::<Result<(), String>>().await
        }
    });
    let limit = Duration::from_millis(100);
    let supervise = election.supervise().child("first", diligent(&book)).with(stubborn.stop_within(limit));
    let supervisor = supervise.start().unwrap();
    reaches(&supervisor, all_run).await;
    until(|| lines(&book).len() == 1).await;
    let before = clock::now();
    soon(supervisor.stop()).await.unwrap();
    assert!(clock::now().since(before) >= limit, "its own time counts, not the node's grace");
    assert_eq!(lines(&book), ["+first", "-stubborn", "-first"]);
    let status = supervisor.status();
    assert_eq!(status.children[1].last_error.as_deref(), Some("it did not stop within 100ms"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lease_is_kept_as_long_as_a_child_cannot_be_aborted() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let election = start(common::diligent("a"), &store).await.election("reports").unwrap();
    let released = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&released);
    let stuck = ChildSpec::new("stuck", move |child: Child| {
        let released = Arc::clone(&shared);
        async move {
            child.ready();
            tokio::task::yield_now().await; // whom it woke must not be stuck behind it on this thread
            until_blocking(|| released.load(Ordering::Acquire)); // no await: nothing can abort it
            Ok::<_, String>(())
        }
    });
    let stuck = stuck.start_within(Duration::from_secs(10)).stop_within(Duration::from_millis(1));
    let supervisor = election.supervise().restarts(1, common::HANG).with(stuck).start().unwrap();
    reaches(&supervisor, all_run).await;
    let renewals = wrapped.count("renew");
    let stopping = tokio::spawn(async move { supervisor.stop().await });
    until(|| wrapped.count("renew") > renewals + 6).await;
    assert_eq!(wrapped.count("resign"), 0, "the child still runs");
    assert!(!stopping.is_finished());
    released.store(true, Ordering::Release);
    soon(stopping).await.unwrap().unwrap();
    assert_eq!(wrapped.count("resign"), 1);
}

#[tokio::test]
async fn after_an_unwilling_loss_all_children_are_gone_before_anybody_else_can_lead() {
    let wrapped = Wrapped::new(memory());
    let node = start(steady("a"), &wrapped.store()).await;
    let book = Log::default();
    let shared = Arc::clone(&book);
    let deaf = move |_: Child| {
        let end = OnDrop(Arc::clone(&shared), String::from("-deaf"));
        async move {
            let _end = end;
            std::future::pending::<Result<(), String>>().await
        }
    };
    let election = node.election("reports").unwrap();
    // Time to stop that is not theirs to take.
    let deaf = |name: &str| ChildSpec::new(name, deaf.clone()).stop_within(Duration::from_secs(3600));
    let supervise = election.supervise().with(deaf("deaf")).child("polite", diligent(&book));
    let supervisor = supervise.with(deaf("deaf too")).start().unwrap();
    reaches(&supervisor, all_run).await;
    until(|| lines(&book).len() == 1).await;
    wrapped.set_all(&Manner::Refuses);
    until(|| lines(&book).len() == 4).await;
    let status = reaches(&supervisor, |now| now.state == SupervisorState::Waiting).await;
    assert!(status.children.iter().all(|child| child.restarts == 0), "{status:?}");
    wrapped.set_all(&Manner::Dutiful);
    let status = reaches(&supervisor, all_run).await;
    assert!(status.term > Some(Term::new(1)), "it stood again");
}

#[tokio::test]
async fn a_child_that_ends_because_its_term_is_over_has_not_failed() {
    let wrapped = Wrapped::new(memory());
    let node = start(brief("a"), &wrapped.store()).await;
    let watchful = |child: Child| async move {
        while child.check().is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Err::<(), _>("leads no longer")
    };
    let supervisor =
        node.election("reports").unwrap().supervise().child("watchful", watchful).start().unwrap();
    for term in 1..=3 {
        let led = |now: &SupervisorStatus| {
            now.state == SupervisorState::Leading && now.term >= Some(Term::new(term))
        };
        reaches(&supervisor, led).await;
        wrapped.set_all(&Manner::Refuses);
        let status = reaches(&supervisor, |now| now.state == SupervisorState::Waiting).await;
        assert_eq!((status.children[0].restarts, &status.children[0].last_error), (0, &None));
        wrapped.set_all(&Manner::Dutiful);
    }
}

#[tokio::test]
async fn closing_the_node_or_ending_the_election_stops_the_work_in_order_and_ends_the_supervisor() {
    let store = memory();
    for ends in ["node", "election"] {
        let node = start(calm(ends), &store).await;
        let election = node.election(ends).unwrap();
        let book = Log::default();
        let supervise = election.supervise().child("first", diligent(&book)).child("second", diligent(&book));
        let supervisor = supervise.start().unwrap();
        reaches(&supervisor, all_run).await;
        until(|| lines(&book).len() == 2).await;
        let error = if ends == "node" {
            soon(node.close()).await;
            soon(supervisor.ended()).await.unwrap_err()
        } else {
            soon(election.delete_even_if_led()).await.unwrap();
            soon(supervisor.ended()).await.unwrap_err()
        };
        match ends {
            "node" => assert!(matches!(&*error, ElectionError::Closed(Ending::Closed)), "{error}"),
            _ => assert!(matches!(&*error, ElectionError::Ended), "{error}"),
        }
        assert_eq!(lines(&book), ["+first", "+second", "-second", "-first"]);
    }
}

#[tokio::test]
async fn dropping_the_supervisor_stops_the_work_and_frees_the_lease_after_it() {
    let wrapped = Wrapped::new(memory());
    let election = start(calm("a"), &wrapped.store()).await.election("reports").unwrap();
    let book = Log::default();
    let supervisor = election.supervise().child("only", diligent(&book)).start().unwrap();
    reaches(&supervisor, all_run).await;
    until(|| lines(&book).len() == 1).await;
    drop(supervisor);
    until(|| wrapped.count("resign") > 0).await;
    assert_eq!(lines(&book), ["+only", "-only"]);
}

#[tokio::test]
async fn a_leader_that_is_asked_or_whose_child_resigns_makes_way_and_stands_again() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let resigns = |child: Child| async move {
        if child.check() == Ok(Term::new(1)) {
            child.leadership().unwrap().resign().await.unwrap();
        }
        child.told_to_stop().await;
        Ok::<_, String>(())
    };
    let supervisor = election.supervise().child("tired", resigns).start().unwrap();
    reaches(&supervisor, |now| all_run(now) && now.term == Some(Term::new(2))).await;
    store.petition("reports".try_into().unwrap(), None).await.unwrap();
    let status = reaches(&supervisor, |now| all_run(now) && now.term == Some(Term::new(3))).await;
    assert_eq!((status.children[0].restarts, &status.children[0].last_error), (0, &None));
}

#[test]
fn a_runtime_that_is_shut_down_takes_its_children_with_it_and_frees_the_lease() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let book = Log::default();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let supervisor = runtime.block_on(async {
        let election = start(calm("a"), &store).await.election("reports").unwrap();
        let supervisor = election.supervise().child("only", diligent(&book)).start().unwrap();
        reaches(&supervisor, all_run).await;
        until(|| lines(&book).len() == 1).await;
        supervisor
    });
    drop(runtime);
    until_blocking(|| wrapped.count("resign") + wrapped.count("close") > 0);
    assert_eq!(lines(&book), ["+only", "-only"]);
    drop(supervisor);
}
