//! The usual form: work that runs while elected.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Manner, Wrapped, brief, calm, diligent, memory, soon, sqlite, start, until};
use tenure::{ElectionError, EventKind, EventQuery, LeadError, Leadership, Reason, Store, Term};

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Says something when it is dropped.
struct OnDrop(Log, &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(self.1);
    }
}

/// Lets the store do its duty again when it is dropped.
struct Heals(Arc<Wrapped>);

impl Drop for Heals {
    fn drop(&mut self) {
        self.0.set_all(&Manner::Dutiful);
    }
}

async fn holder(store: &Arc<dyn Store>) -> Option<Term> {
    let record = store.read("reports".try_into().unwrap()).await.unwrap().value;
    record.holder.map(|holder| holder.term)
}

#[tokio::test]
async fn work_runs_with_its_term_and_its_value_is_returned_after_the_lease_is_given_back() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let lead = election.lead(async |leadership: Leadership| Ok::<_, String>(leadership.check().unwrap()));
    let term = soon(lead).await.unwrap();
    assert_eq!(term, Term::new(1));
    assert_eq!(holder(&store).await, None, "given back before `lead` returned");
}

#[tokio::test]
async fn an_error_of_the_work_is_returned_after_the_lease_is_given_back() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let error = soon(election.lead(async |_| Err::<(), _>("no paper"))).await.unwrap_err();
    assert!(matches!(error, LeadError::Work("no paper")));
    assert_eq!(error.to_string(), "no paper");
    assert_eq!(holder(&store).await, None);
}

#[tokio::test]
async fn a_panic_of_the_work_reaches_the_caller_after_the_lease_is_given_back() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let lead = tokio::spawn(async move {
        election.lead(async |_| if true { panic!("out of ink") } else { Ok::<(), String>(()) }).await
    });
    let panic = soon(lead).await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"out of ink"));
    assert_eq!(holder(&store).await, None);
}

#[tokio::test]
async fn a_panic_before_the_first_await_is_a_panic_of_the_work_too() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let lead = tokio::spawn(async move {
        let work = |_: Leadership| -> std::future::Ready<Result<(), String>> { panic!("at once") };
        election.lead(work).await
    });
    assert!(soon(lead).await.unwrap_err().is_panic());
    assert_eq!(holder(&store).await, None);
}

#[tokio::test]
async fn work_is_cancelled_then_joined_then_the_lease_is_freed() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    let log = Log::default();
    let (shared, (tell, told)) = (Arc::clone(&log), tokio::sync::oneshot::channel());
    let mut tell = Some(tell);
    let lead = tokio::spawn(async move {
        let work = move |leadership: Leadership| {
            let (log, tell) = (Arc::clone(&shared), tell.take());
            async move {
                let _end = OnDrop(Arc::clone(&log), "joined");
                let cancelled = leadership.cancellation();
                tell.unwrap().send(leadership).unwrap();
                cancelled.cancelled().await;
                log.lock().unwrap().push("cancelled");
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok::<_, String>("done")
            }
        };
        election.lead(work).await
    });
    let leadership = soon(told).await.unwrap();
    soon(leadership.resign()).await.unwrap();
    assert_eq!(leadership.check().unwrap_err().reason, Reason::Resigned);
    assert_eq!(wrapped.count("resign"), 0, "the work has not stopped yet");
    assert_eq!(soon(lead).await.unwrap().unwrap(), "done");
    assert_eq!(wrapped.count("resign"), 1);
    assert_eq!(*log.lock().unwrap(), ["cancelled", "joined"]);
}

#[tokio::test]
async fn the_work_itself_may_resign_without_a_deadlock() {
    let store = memory();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let lead = election.lead(async |leadership: Leadership| {
        leadership.resign().await.unwrap();
        let again = leadership.resign().await.unwrap_err();
        Ok::<_, String>(again.reason)
    });
    assert_eq!(soon(lead).await.unwrap(), Reason::Resigned);
    assert_eq!(holder(&store).await, None);
}

#[tokio::test]
async fn work_that_does_not_stop_is_cut_off_after_its_grace_and_only_then_the_lease_is_freed() {
    let store = memory();
    let node = start(calm("a").grace(Duration::from_millis(100)), &store).await;
    let election = node.election("reports").unwrap();
    let log = Log::default();
    let shared = Arc::clone(&log);
    let lead = election.lead(move |leadership: Leadership| {
        let end = OnDrop(Arc::clone(&shared), "dropped");
        async move {
            let _end = end;
            leadership.resign().await.unwrap();
            std::future::pending::<Result<(), String>>().await
        }
    });
    assert!(matches!(soon(lead).await, Err(LeadError::CutOff)));
    assert_eq!(*log.lock().unwrap(), ["dropped"]);
    assert_eq!(holder(&store).await, None);
}

#[tokio::test]
async fn lost_leadership_stops_the_work_discards_its_result_and_stands_again() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let node = start(brief("a"), &store).await;
    let election = node.election("reports").unwrap();
    let rounds = Arc::new(AtomicU64::new(0));
    let (counted, gate) = (Arc::clone(&rounds), Arc::clone(&wrapped));
    let lead = election.lead(move |leadership: Leadership| {
        let (round, gate) = (counted.fetch_add(1, Ordering::Relaxed), Arc::clone(&gate));
        async move {
            if round > 0 {
                return Ok::<_, String>((round, leadership.term()));
            }
            gate.set_all(&Manner::Refuses);
            // It may be cut off before it has seen that it is over.
            let _heals = Heals(gate);
            let reason = leadership.lost().await;
            assert_eq!(reason, Reason::Lapsed);
            assert!(leadership.check().is_err());
            Ok((99, leadership.term()))
        }
    });
    let (round, term) = soon(lead).await.unwrap();
    assert!((1..99).contains(&round), "the first round's value is discarded");
    assert!(term > Term::new(1));
    assert_eq!(rounds.load(Ordering::Relaxed), round + 1);
}

#[tokio::test]
async fn dropping_lead_aborts_the_work_and_the_lease_is_freed_after_it_has_ended() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let election = start(calm("a"), &store).await.election("reports").unwrap();
    let log = Log::default();
    let shared = Arc::clone(&log);
    let observed = Arc::clone(&wrapped);
    let lead = tokio::spawn(async move {
        let work = move |_: Leadership| {
            let (log, observed) = (Arc::clone(&shared), Arc::clone(&observed));
            async move {
                let _end = OnDrop(Arc::clone(&log), "dropped");
                log.lock().unwrap().push("started");
                assert_eq!(observed.count("resign"), 0);
                std::future::pending::<Result<(), String>>().await
            }
        };
        election.lead(work).await
    });
    until(|| !log.lock().unwrap().is_empty()).await;
    assert_eq!(wrapped.count("resign"), 0);
    lead.abort();
    until(|| wrapped.count("resign") > 0).await;
    assert_eq!(*log.lock().unwrap(), ["started", "dropped"]);
}

#[tokio::test]
async fn a_deleted_election_ends_lead() {
    let store = memory();
    let node = start(diligent("a"), &store).await;
    let election = node.election("reports").unwrap();
    let other = start(calm("b"), &store).await.election("reports").unwrap();
    let lead = election.lead(async |leadership: Leadership| {
        leadership.lost().await;
        Ok::<_, String>(())
    });
    let delete = async {
        while other.delete_even_if_led().await.is_err() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        std::future::pending().await
    };
    let ended = tokio::select! { ended = soon(lead) => ended, () = delete => unreachable!() };
    assert!(matches!(ended, Err(LeadError::Election(ElectionError::Ended))), "{ended:?}");
}

#[tokio::test]
async fn closing_the_node_joins_the_work_first() {
    let directory = tempfile::tempdir().unwrap();
    let store = sqlite(&directory).await;
    let node = start(calm("a"), &store).await;
    let election = node.election("reports").unwrap();
    let log = Log::default();
    let shared = Arc::clone(&log);
    let lead = tokio::spawn(async move {
        let work = move |leadership: Leadership| {
            let log = Arc::clone(&shared);
            async move {
                log.lock().unwrap().push("started");
                assert_eq!(leadership.lost().await, Reason::Closing);
                log.lock().unwrap().push("stopped");
                Ok::<_, String>(7)
            }
        };
        election.lead(work).await
    });
    until(|| !log.lock().unwrap().is_empty()).await;
    soon(node.close()).await;
    assert_eq!(*log.lock().unwrap(), ["started", "stopped"]);
    assert_eq!(soon(lead).await.unwrap().unwrap(), 7);
    let events = store.events(EventQuery::default()).await.unwrap().value;
    assert!(events.iter().any(|event| event.kind == EventKind::NodeLeft));
}

#[tokio::test]
async fn a_leader_that_is_asked_makes_way_for_the_first_in_line_and_stands_again() {
    let store = memory();
    let (first, second) = (start(calm("a"), &store).await, start(calm("b"), &store).await);
    let terms = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&terms);
    let election = first.election("reports").unwrap();
    let lead = tokio::spawn(async move {
        election
            .lead(move |leadership: Leadership| {
                shared.lock().unwrap().push(leadership.term());
                async move { Ok::<_, String>(leadership.lost().await) }
            })
            .await
    });
    until(|| terms.lock().unwrap().len() == 1).await;
    let other = second.election("reports").unwrap();
    let waits = tokio::spawn(async move { other.elected().await });
    while store.candidates("reports".try_into().unwrap()).await.unwrap().value.is_empty() {
        tokio::task::yield_now().await;
    }
    store.petition("reports".try_into().unwrap(), None).await.unwrap();
    let leadership = soon(waits).await.unwrap().unwrap();
    assert_eq!(leadership.term(), Term::new(2), "the one that waited is next");
    leadership.resign().await.unwrap();
    until(|| terms.lock().unwrap().len() == 2).await;
    assert_eq!(*terms.lock().unwrap(), [Term::new(1), Term::new(3)], "and the first stood again");
    lead.abort();
}
