//! Where supervised work runs: elected, chosen, or nowhere; and what is refused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::children::{Log, all_run, diligent, hasty, lines, reaches};
use crate::common::{calm, memory, soon, start};
use tenure::{Child, ElectionError, Mode, NodeEvent, Supervise, SupervisorState, Term};

#[allow(dead_code, reason = "its `main` waits for a person")]
#[path = "../../examples/supervise.rs"]
mod example;

#[tokio::test]
async fn switched_off_the_work_runs_where_it_was_chosen_to_run_and_needs_no_store() {
    let book = Log::default();
    let terms = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&terms);
    let works = move |child: Child| {
        seen.lock().unwrap().push(child.check().unwrap());
        let failed = seen.lock().unwrap().len() == 1;
        async move {
            assert!(child.leadership().is_none());
            if failed {
                return Err("once");
            }
            child.told_to_stop().await;
            assert!(child.check().is_err());
            Ok(())
        }
    };
    let off = hasty(tenure::supervise()).mode("off".parse().unwrap());
    let here = off.clone().chosen(true).child("works", works).child("too", diligent(&book)).start().unwrap();
    let elsewhere = off.child("idle", diligent(&book)).start().unwrap();
    let status = reaches(&here, |now| all_run(now) && now.children[0].restarts == 1).await;
    assert_eq!((status.mode, status.state, status.term), (Mode::Off, SupervisorState::Leading, None));
    assert_eq!(*terms.lock().unwrap(), [Term::NONE; 2], "below every term that was ever granted");
    soon(here.stop()).await.unwrap();
    assert_eq!(elsewhere.status().state, SupervisorState::Waiting);
    soon(elsewhere.stop()).await.unwrap();
    assert_eq!(lines(&book), ["+too", "-too"], "and nowhere else");
    assert_eq!(here.status().children[0].last_error.as_deref(), Some("once"), "no panic in the second life");
}

#[tokio::test]
async fn in_shadow_a_node_is_elected_and_starts_nothing() {
    let store = memory();
    let node = start(calm("a"), &store).await;
    let mut events = node.subscribe();
    let election = node.election("reports").unwrap();
    let book = Log::default();
    let supervise = election.supervise().mode(Mode::Shadow).child("never", diligent(&book));
    let supervisor = supervise.start().unwrap();
    let status = reaches(&supervisor, |now| now.state == SupervisorState::Leading).await;
    assert_eq!(status.term, Some(Term::new(1)));
    while !matches!(soon(events.next()).await.unwrap(), NodeEvent::LeaderElected { .. }) {}
    assert_eq!(election.leader().await.unwrap().unwrap().node.as_str(), "a", "and everybody can see it");
    soon(supervisor.stop()).await.unwrap();
    assert_eq!(election.leader().await.unwrap(), None);
    assert_eq!(lines(&book), [""; 0]);
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_anything_is_started() {
    let election = start(calm("a"), &memory()).await.election("reports").unwrap();
    let fine = |_: Child| async { Ok::<_, String>(()) };
    let refusal = |supervise: Supervise| supervise.start().unwrap_err().to_string();
    assert!(refusal(election.supervise()).contains("add a child"));
    assert!(refusal(election.supervise().child(" x", fine)).contains("the child name begins or ends"));
    let twice = election.supervise().child("x", fine).child("x", fine);
    assert!(refusal(twice).contains("two children are called `x`"));
    let homeless = tenure::supervise().mode(Mode::Shadow).child("x", fine);
    assert!(refusal(homeless).contains("the mode is `shadow`, but there is no election"));
    let endless = election.supervise().child("x", fine).restarts(100, Duration::from_secs(1));
    assert!(refusal(endless).contains("the budget could never be used up"));
    let ineligible = start(calm("b").eligible(false), &memory()).await.election("reports").unwrap();
    let supervisor = ineligible.supervise().child("x", fine).start().unwrap();
    assert!(matches!(&*soon(supervisor.ended()).await.unwrap_err(), ElectionError::NotEligible));
}

#[test]
fn without_a_runtime_nothing_is_supervised() {
    let error = tenure::supervise().child("x", |_: Child| async { Ok::<_, String>(()) }).start().unwrap_err();
    assert!(error.to_string().contains("within one"));
}

#[tokio::test]
async fn the_example_runs_on_one_node_and_on_the_other_when_the_first_is_stopped() {
    let store = memory();
    let [first, second] = ["a", "b"].map(|id| {
        let store = Arc::clone(&store);
        async move {
            let election = start(calm(id), &store).await.election("coordinator").unwrap();
            example::coordinator().mode("on".parse().unwrap()).stand_for(&election).start().unwrap()
        }
    });
    let first = first.await;
    reaches(&first, all_run).await;
    let second = second.await;
    assert_eq!(second.status().state, SupervisorState::Waiting);
    soon(first.stop()).await.unwrap();
    let status = reaches(&second, all_run).await;
    assert_eq!(status.term, Some(Term::new(2)));
    assert_eq!(example::line(&status), "leading under term 2: health running, poller running");
}
