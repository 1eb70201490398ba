//! A gate: it lets work through under whichever term, and knows who leads elsewhere.

use crate::common;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Manner, Wrapped, brief, calm, memory, soon, start, steady, until};
use futures_util::FutureExt;
use tenure::{Gate, Leadership, Reason, Term};
use tenure_store::clock;

fn refused(gate: &Gate) -> Option<Reason> {
    gate.check().err().map(|lost| lost.reason)
}

fn known(gate: &Gate) -> Option<(String, u64, Option<String>)> {
    let leader = gate.leader()?;
    Some((leader.node.to_string(), leader.term.number(), leader.address.clone()))
}

#[tokio::test]
async fn a_gate_follows_this_node_through_its_terms() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let gate = election.gate();
    assert_eq!(refused(&gate), Some(Reason::NotElected));
    assert!(gate.enter().is_err());
    for term in 1..4 {
        let leadership = soon(election.elected()).await.unwrap();
        assert_eq!(gate.check(), Ok(Term::new(term)));
        assert_eq!(election.gate().check(), Ok(Term::new(term)), "also one that is made under it");
        soon(leadership.resign()).await.unwrap();
        assert_eq!(refused(&gate), Some(Reason::Resigned));
    }
}

#[tokio::test]
async fn a_gate_is_shut_by_the_clock_when_renewals_fail() {
    let wrapped = Wrapped::new(memory());
    let election = start(steady("a"), &wrapped.store()).await.election("reports").unwrap();
    let gate = election.gate();
    let leadership = soon(election.elected()).await.unwrap();
    assert!(gate.check().is_ok());
    wrapped.set_all(&Manner::Hangs);
    until(|| gate.check().is_err()).await;
    assert_eq!(refused(&gate), Some(Reason::Lapsed));
    assert!(leadership.check().is_err() && gate.enter().is_err());
    wrapped.set_all(&Manner::Dutiful);
}

#[tokio::test]
async fn a_lease_is_given_back_only_after_the_last_who_was_let_through() {
    let store = memory();
    let (a, b) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
    let election = a.election("reports").unwrap();
    let gate = election.gate();
    let leadership = soon(election.elected()).await.unwrap();
    let (pass, copy) = (gate.enter().unwrap(), gate.enter().unwrap().clone());
    let resigned = Arc::new(AtomicBool::new(false));
    let resigning = tokio::spawn({
        let resigned = Arc::clone(&resigned);
        async move {
            leadership.resign().await.unwrap();
            resigned.store(true, Ordering::Release);
        }
    });
    soon(pass.lost().cancelled()).await;
    assert!(gate.enter().is_err(), "nobody else is let through");
    let rival = tokio::spawn(async move { b.election("reports").unwrap().elected().await });
    while election.candidates().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(pass);
    assert_eq!(election.leader().await.unwrap().map(|leader| leader.node.to_string()), Some("a".into()));
    assert!(!resigned.load(Ordering::Acquire) && !rival.is_finished());
    drop(copy);
    soon(resigning).await.unwrap();
    assert_eq!(soon(rival).await.unwrap().unwrap().term(), Term::new(2));
}

#[tokio::test]
async fn the_end_of_the_task_is_not_the_end_of_what_was_let_through() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let gate = election.gate();
    let (entered, pass) = tokio::sync::oneshot::channel();
    let mut entered = Some(entered);
    let leading = tokio::spawn({
        let (election, gate) = (election.clone(), gate.clone());
        async move {
            election
                .lead(|_: Leadership| {
                    let _ = entered.take().unwrap().send(gate.enter().unwrap());
                    async { Ok::<_, std::io::Error>(()) }
                })
                .await
        }
    });
    let pass = soon(pass).await.unwrap();
    soon(pass.lost().cancelled()).await; // the work has returned
    let holder = election.leader().await.unwrap().map(|leader| leader.node.to_string());
    assert!(!leading.is_finished() && holder.as_deref() == Some("a"));
    drop(pass);
    soon(leading).await.unwrap().unwrap();
    assert_eq!(election.leader().await.unwrap(), None);
}

#[tokio::test]
async fn who_was_let_through_is_told_when_its_time_is_over() {
    let store = memory();
    let election =
        start(calm("a").grace(Duration::from_millis(20)), &store).await.election("reports").unwrap();
    let gate = election.gate();
    let leadership = soon(election.elected()).await.unwrap();
    let pass = gate.enter().unwrap();
    assert!(pass.cut_off().now_or_never().is_none() && pass.check().is_ok());
    let resigning = tokio::spawn(async move { leadership.resign().await });
    soon(pass.cut_off()).await;
    assert!(pass.lost().is_cancelled(), "first the one, then the other");
    drop(pass);
    soon(resigning).await.unwrap().unwrap();
}

#[tokio::test]
async fn nobody_is_let_through_once_whoever_is_in_charge_is_gone() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let gate = election.gate();
    let leadership = soon(election.elected()).await.unwrap();
    let pass = gate.enter().unwrap();
    drop(leadership);
    assert!(gate.enter().is_err(), "the last handle is gone");
    assert!(election.leader().await.unwrap().is_some(), "but what was let through is not");
    drop(pass);
    let panicking = tokio::spawn({
        let (election, gate) = (election.clone(), gate.clone());
        async move {
            let kept = Arc::new(std::sync::Mutex::new(None));
            let keep = Arc::clone(&kept);
            let work = move |_: Leadership| {
                let (keep, gate) = (Arc::clone(&keep), gate.clone());
                async move {
                    *keep.lock().unwrap() = Some(gate.enter().unwrap());
                    assert!(gate.check().is_err(), "the work fails");
                    Ok::<_, std::io::Error>(())
                }
            };
            let leading = std::panic::AssertUnwindSafe(election.lead(work)).catch_unwind();
            let shut = async {
                until(|| kept.lock().unwrap().is_some()).await;
                until(|| kept.lock().unwrap().as_ref().is_some_and(|pass| pass.check().is_err())).await;
                kept.lock().unwrap().take();
            };
            tokio::join!(leading, shut).0.is_err()
        }
    });
    assert!(soon(panicking).await.unwrap(), "its panic is told after what it let through has stopped");
}

#[tokio::test]
async fn a_node_stands_again_only_after_what_was_let_through_has_stopped() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let gate = election.gate();
    let leading = tokio::spawn({
        let election = election.clone();
        let work = async |leadership: Leadership| {
            leadership.lost().await;
            Ok::<_, std::io::Error>(())
        };
        async move { election.lead(work).await }
    });
    until(|| gate.check().is_ok()).await;
    let pass = gate.enter().unwrap();
    store.petition("reports".try_into().unwrap(), None).await.unwrap();
    soon(pass.lost().cancelled()).await;
    assert!(election.candidates().await.unwrap().is_empty() && !leading.is_finished());
    drop(pass);
    until(|| gate.check() == Ok(Term::new(2))).await;
}

#[tokio::test]
async fn a_gate_elsewhere_knows_who_leads_and_where() {
    let store = memory();
    let a = start(calm("a").address("http://127.0.0.1:8001"), &store).await;
    let b = start(calm("b"), &store).await;
    let c = start(calm("c"), &store).await;
    let gate = c.election("reports").unwrap().gate();
    assert_eq!((known(&gate), gate.term()), (None, Term::NONE));
    let leading = soon(a.election("reports").unwrap().elected()).await.unwrap();
    let at = |address: Option<&str>, node: &str, term| Some((node.into(), term, address.map(Into::into)));
    until(|| known(&gate) == at(Some("http://127.0.0.1:8001"), "a", 1)).await;
    assert!(gate.leader().unwrap().age() < common::HANG);
    soon(leading.resign()).await.unwrap();
    until(|| known(&gate).is_none()).await;
    assert_eq!(gate.term(), Term::new(1), "the highest that was seen");
    let leading = soon(b.election("reports").unwrap().elected()).await.unwrap();
    until(|| known(&gate) == at(None, "b", 2)).await;
    drop(gate);
    drop(leading);
}

#[tokio::test]
async fn a_gate_says_whether_its_news_may_be_older_than_a_lease() {
    let (store, wrapped) = (memory(), Wrapped::new(memory()));
    assert!(start(calm("a"), &store).await.election("reports").unwrap().gate().is_in_touch());
    let gate = start(brief("b"), &wrapped.store()).await.election("reports").unwrap().gate();
    until(|| gate.is_in_touch()).await;
    wrapped.set_all(&Manner::Hangs);
    until(|| !gate.is_in_touch()).await;
    wrapped.set_all(&Manner::Dutiful);
    until(|| gate.is_in_touch()).await;
}

#[tokio::test]
async fn a_leader_knows_itself() {
    let store = memory();
    let election = start(calm("a").address("https://a.example"), &store).await.election("reports").unwrap();
    let gate = election.gate();
    let leadership = soon(election.elected()).await.unwrap();
    until(|| known(&gate) == Some(("a".into(), 1, Some("https://a.example".into())))).await;
    soon(leadership.resign()).await.unwrap();
    until(|| known(&gate).is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_let_through_while_leadership_comes_and_goes_holds_the_lease() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let (gate, over) = (election.gate(), Arc::new(AtomicBool::new(false)));
    let passed: [Arc<AtomicU32>; 2] = Default::default();
    let enter = |passed: &Arc<AtomicU32>| {
        let (gate, over, store, passed) =
            (gate.clone(), Arc::clone(&over), Arc::clone(&store), Arc::clone(passed));
        tokio::spawn(async move {
            while !over.load(Ordering::Acquire) {
                if let Ok(pass) = gate.enter() {
                    let record = store.read("reports".try_into().unwrap()).await.unwrap().value;
                    assert_eq!(record.holder.map(|holder| holder.term), Some(pass.term()));
                    passed.fetch_add(1, Ordering::Relaxed);
                }
                tokio::task::yield_now().await;
            }
        })
    };
    let entrants = passed.each_ref().map(enter);
    // On a busy machine it takes a while until both have met an open gate.
    let met = || passed.iter().all(|passed| passed.load(Ordering::Relaxed) > 0);
    let (mut rounds, end) = (0, clock::now() + Duration::from_secs(60));
    while rounds < 200 || (!met() && clock::now() < end) {
        let leadership = soon(election.elected()).await.unwrap();
        tokio::task::yield_now().await;
        soon(leadership.resign()).await.unwrap();
        rounds += 1;
    }
    over.store(true, Ordering::Release);
    for entrant in entrants {
        soon(entrant).await.unwrap();
    }
    assert!(met(), "both were let through");
}
