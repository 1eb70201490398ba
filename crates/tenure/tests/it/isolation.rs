//! Leadership against everything that can go wrong around it: blocked runtimes, a stalled or dead
//! driver, forks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Manner, Wrapped, brief, calm, diligent, memory, soon, start, until, until_blocking};
use futures_util::FutureExt;
use tenure::{ElectionError, Ending, LeadError, Leadership, Node, Reason, Term};
use tenure_store::clock;
use tokio::runtime::Runtime;

const WORKERS: usize = 2;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build().unwrap()
}

/// Blocks every worker of a runtime until `released`, and returns when all are blocked.
fn block_every_worker(runtime: &Runtime, released: &Arc<AtomicBool>) {
    let blocked = Arc::new(AtomicU64::new(0));
    for _ in 0..WORKERS {
        let (blocked, released) = (Arc::clone(&blocked), Arc::clone(released));
        runtime.spawn(async move {
            blocked.fetch_add(1, Ordering::AcqRel);
            until_blocking(|| released.load(Ordering::Acquire));
        });
    }
    until_blocking(|| blocked.load(Ordering::Acquire) == WORKERS as u64);
}

fn lead_on(
    runtime: &Runtime,
    builder: tenure::NodeBuilder,
    store: Arc<dyn tenure::Store>,
) -> (Node, Leadership) {
    let task = runtime.spawn(async move {
        let node = start(builder, &store).await;
        let leadership = soon(node.election("reports").unwrap().elected()).await.unwrap();
        (node, leadership)
    });
    runtime.block_on(task).unwrap()
}

#[test]
fn leadership_is_kept_while_the_application_blocks_every_worker() {
    let runtime = runtime();
    let wrapped = Wrapped::new(memory());
    let (_node, leadership) = lead_on(&runtime, diligent("a"), wrapped.store());
    let released = Arc::default();
    block_every_worker(&runtime, &released);
    let renewals = wrapped.count("renew");
    until_blocking(|| wrapped.count("renew") > renewals + 5);
    assert_eq!(leadership.check(), Ok(Term::new(1)));
    released.store(true, Ordering::Release);
}

#[test]
fn with_a_health_probe_a_wedged_application_loses_leadership() {
    let ttl = Duration::from_millis(900);
    let runtime = runtime();
    let (node, leadership) = lead_on(&runtime, Node::builder("a").ttl(ttl).health(async || true), memory());
    let released = Arc::default();
    block_every_worker(&runtime, &released);
    until_blocking(|| leadership.check().is_err());
    // On a machine that stands still, its driver may find out too late, and it has lapsed by then.
    let reason = leadership.check().unwrap_err().reason;
    assert!(matches!(reason, Reason::Unhealthy | Reason::Lapsed), "{reason}");
    released.store(true, Ordering::Release);
    drop(leadership);
    let again = runtime.block_on(async { soon(node.election("reports").unwrap().elected()).await });
    assert!(again.is_ok(), "well again, it stands again");
}

#[tokio::test]
async fn a_probe_that_fails_hangs_or_panics_costs_leadership() {
    for manner in [1, 2, 3] {
        let store = memory();
        let now = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&now);
        let builder = brief("a").health(move || {
            let manner = shared.load(Ordering::Acquire);
            async move {
                match manner {
                    0 => true,
                    1 => false,
                    2 => std::future::pending().await,
                    _ => panic!("the probe was told to panic"),
                }
            }
        });
        let node = start(builder, &store).await;
        let election = node.election("reports").unwrap();
        let leadership = soon(election.elected()).await.unwrap();
        now.store(manner, Ordering::Release);
        // On a machine that stands still, its driver may find out too late, and it has lapsed by then.
        let reason = soon(leadership.lost()).await;
        assert!(matches!(reason, Reason::Unhealthy | Reason::Lapsed), "manner {manner}: {reason}");
        now.store(0, Ordering::Release);
        drop(leadership);
        assert!(soon(election.elected()).await.is_ok());
    }
}

#[tokio::test]
async fn guards_refuse_by_the_clock_when_the_driver_is_stalled() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let ttl = Duration::from_millis(900);
    let node = start(Node::builder("a").ttl(ttl), &store).await;
    let leadership = soon(node.election("reports").unwrap().elected()).await.unwrap();
    let released = Arc::new(AtomicBool::new(false));
    wrapped.set("renew", Manner::Blocks(Arc::clone(&released)));
    let blocked = clock::now();
    // The last moment at which it was let through, read before it was asked.
    let mut passed = blocked;
    soon(async {
        loop {
            let asking = clock::now();
            if leadership.check().is_err() {
                return;
            }
            passed = asking;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert!(passed.since(blocked) < ttl, "not when somebody else could have been granted the lease");
    assert_eq!(soon(leadership.lost()).await, Reason::Lapsed, "told although the driver is stalled");
    assert_eq!(leadership.check().unwrap_err().reason, Reason::Lapsed);
    released.store(true, Ordering::Release);
    wrapped.set("renew", Manner::Dutiful);
    let old = leadership.term();
    drop(leadership);
    let again = soon(node.election("reports").unwrap().elected()).await.unwrap();
    assert!(again.term() > old, "what was refused once is not revived by a late answer");
}

#[tokio::test]
async fn work_is_cut_off_in_time_when_the_driver_is_stalled() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let ttl = Duration::from_millis(900);
    let node = start(Node::builder("a").ttl(ttl), &store).await;
    let election = node.election("reports").unwrap();
    let released = Arc::new(AtomicBool::new(false));
    let (gate, stall, rounds) = (Arc::clone(&wrapped), Arc::clone(&released), AtomicU64::new(0));
    let lead = tokio::spawn(async move {
        let work = move |_: Leadership| {
            // Dropped with the task, though it may never have run: only then is the driver released.
            let release = (rounds.fetch_add(1, Ordering::Relaxed) == 0).then(|| {
                gate.set("renew", Manner::Blocks(Arc::clone(&stall)));
                ReleaseOnDrop(Arc::clone(&stall), Arc::clone(&gate))
            });
            async move {
                let Some(_release) = release else { return Ok::<_, String>("second") };
                std::future::pending().await
            }
        };
        election.lead(work).await
    });
    assert_eq!(soon(lead).await.unwrap().unwrap(), "second");
    assert!(released.load(Ordering::Acquire));
}

struct ReleaseOnDrop(Arc<AtomicBool>, Arc<Wrapped>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.1.set("renew", Manner::Dutiful);
        self.0.store(true, Ordering::Release);
    }
}

#[tokio::test]
async fn when_the_driver_dies_every_guard_refuses_and_every_wait_ends() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    let node = start(diligent("a"), &store).await;
    let election = node.election("reports").unwrap();
    let leadership = soon(election.elected()).await.unwrap();
    let other = start(calm("b"), &store).await.election("others").unwrap();
    let _held = soon(other.elected()).await.unwrap();
    let others = node.election("others").unwrap();
    let wait = tokio::spawn(async move { others.elected().await });
    let led = node.election("led").unwrap();
    let lead =
        tokio::spawn(
            async move { led.lead(async |_| std::future::pending::<Result<(), String>>().await).await },
        );
    until(|| wrapped.count("claim") >= 4).await;
    wrapped.set("renew", Manner::Panics);
    assert_eq!(soon(leadership.lost()).await, Reason::DriverDied);
    assert_eq!(leadership.check().unwrap_err().reason, Reason::DriverDied);
    let died = |error: &ElectionError| matches!(error, ElectionError::Closed(Ending::DriverDied));
    assert!(died(&soon(wait).await.unwrap().unwrap_err()));
    assert!(died(&soon(election.elected()).await.unwrap_err()));
    assert!(died(&soon(election.leader()).await.unwrap_err()));
    let lead = soon(lead).await.unwrap().unwrap_err();
    assert!(matches!(&lead, LeadError::Election(error) if died(error)), "{lead}");
    assert_eq!(soon(leadership.resign()).await.unwrap_err().reason, Reason::DriverDied);
    soon(node.close()).await;
}

#[tokio::test]
#[allow(unsafe_code, reason = "there is no other way to run code in a forked child")]
async fn a_forked_child_does_not_lead() {
    use std::os::unix::process::CommandExt;
    let store = memory();
    let node = start(calm("a"), &store).await;
    let leadership = soon(node.election("reports").unwrap().elected()).await.unwrap();
    let inherited = leadership.clone();
    let mut command = std::process::Command::new("true");
    let look = move || {
        let forked = |lost: tenure::NotLeader| lost.reason == Reason::Forked;
        let refused = inherited.check().is_err_and(forked);
        let resigned = inherited.resign().now_or_never().is_some_and(|end| end.is_err_and(forked));
        inherited.stopped();
        // The number of an error is all that reaches the parent.
        Err(std::io::Error::from_raw_os_error(if refused && resigned { 77 } else { 78 }))
    };
    // SAFETY: between fork and exec the closure reads atomics and the clock, and takes no lock.
    let outcome = unsafe { command.pre_exec(look) }.spawn();
    assert_eq!(outcome.unwrap_err().raw_os_error(), Some(77));
    assert_eq!(leadership.check(), Ok(Term::new(1)), "the parent leads on");
}

#[tokio::test]
async fn a_store_outage_shorter_than_the_deadline_changes_no_leader() {
    let wrapped = Wrapped::new(memory());
    let store = wrapped.store();
    // After a refusal it asks again within a thirtieth of its ttl.
    let node = start(diligent("a").ttl(Duration::from_secs(30)), &store).await;
    let leadership = soon(node.election("reports").unwrap().elected()).await.unwrap();
    wrapped.set_all(&Manner::Refuses);
    let tries = wrapped.count("renew");
    until(|| wrapped.count("renew") >= tries + 2).await;
    wrapped.set_all(&Manner::Dutiful);
    let renewals = wrapped.count("renew");
    until(|| wrapped.count("renew") >= renewals + 3).await;
    assert_eq!(leadership.check(), Ok(Term::new(1)));
}
