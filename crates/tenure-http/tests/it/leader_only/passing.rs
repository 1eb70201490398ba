//! On the leader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Extension;
use axum::routing::{any, post};
use tenure::{Pass, Term};
use tenure_http::leader_only::{LeaderOnlyLayer, Rules};
use tokio::sync::Notify;

use super::stage::{ask, elected, gate, node, node_with_grace, serve, soon, status, store, until};

/// A grace that is over soon.
const BRIEF: Duration = Duration::from_millis(20);

#[tokio::test]
async fn the_leaders_requests_pass_with_their_term() {
    let store = store().await;
    let node = node("a", None, &store).await;
    let app = Router::new()
        .route("/orders", post(async |Extension(term): Extension<Term>| format!("under {term}")))
        .layer(LeaderOnlyLayer::new(gate(&node)));
    let origin = serve(app).await;
    let before = ask(&origin, "POST /orders", "", "x").await;
    assert_eq!(status(&before), 503, "not elected yet: {before}");
    for term in 1..3 {
        let leadership = elected(&node).await;
        let answer = ask(&origin, "POST /orders", "tenure-term: 99\r\n", "x").await;
        assert_eq!(status(&answer), 200);
        assert!(answer.contains(&format!("tenure-term: {term}\r\n")), "{answer}");
        assert!(answer.contains("tenure-leader: a\r\n") && answer.ends_with(&format!("under {term}")));
        soon(leadership.resign()).await.unwrap();
        assert_eq!(status(&ask(&origin, "POST /orders", "", "x").await), 503, "resigned");
    }
}

#[tokio::test]
async fn what_is_not_for_the_leader_only_passes_everywhere() {
    let store = store().await;
    let node = node("a", None, &store).await;
    let app = Router::new()
        .fallback(any(async |term: Option<Extension<Term>>| format!("{:?}", term.map(|term| term.0))))
        .layer(LeaderOnlyLayer::new(gate(&node)).only(Rules::writes()));
    let origin = serve(app).await;
    assert!(ask(&origin, "GET /orders", "", "").await.ends_with("None"));
    assert_eq!(status(&ask(&origin, "DELETE /orders", "", "").await), 503);
    let _leadership = elected(&node).await;
    // A node reads who leads a moment after it does so itself.
    let known = async || {
        let answer = ask(&origin, "GET /orders", "", "").await;
        assert!(answer.ends_with("None"), "{answer}");
        answer.contains("tenure-leader: a\r\n")
    };
    soon(async { while !known().await {} }).await;
    assert!(ask(&origin, "DELETE /orders", "", "").await.ends_with("Some(Term(1))"));
}

/// A service that waits, and what can be seen of it.
#[derive(Default)]
struct Slow {
    entered: Notify,
    go: Notify,
    done: AtomicBool,
    dropped: AtomicBool,
}

struct Dropped(Arc<Slow>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.store(true, Ordering::Release);
    }
}

fn slow(layer: LeaderOnlyLayer) -> (Router, Arc<Slow>) {
    let slow = Arc::new(Slow::default());
    let seen = Arc::clone(&slow);
    let work = async move || {
        let _dropped = Dropped(Arc::clone(&seen));
        seen.entered.notify_one();
        seen.go.notified().await;
        seen.done.store(true, Ordering::Release);
        "done"
    };
    (Router::new().route("/orders", post(work)).layer(layer), slow)
}

#[tokio::test]
async fn leadership_is_handed_over_after_the_request_that_is_worked_on() {
    let store = store().await;
    let (a, b) = (node("a", None, &store).await, node("b", None, &store).await);
    let (app, slow) = slow(LeaderOnlyLayer::new(gate(&a)));
    let origin = serve(app).await;
    let leadership = elected(&a).await;
    let rival = tokio::spawn(async move { elected(&b).await });
    let asked = tokio::spawn({
        let origin = origin.clone();
        async move { ask(&origin, "POST /orders", "", "x").await }
    });
    soon(slow.entered.notified()).await;
    let resigning = tokio::spawn(async move { leadership.resign().await });
    let gate = gate(&a);
    until(|| gate.check().is_err()).await;
    assert_eq!(status(&ask(&origin, "POST /orders", "", "x").await), 503, "nobody else gets in");
    assert!(!rival.is_finished() && !slow.done.load(Ordering::Acquire));
    slow.go.notify_one();
    assert_eq!(status(&soon(asked).await.unwrap()), 200);
    soon(resigning).await.unwrap().unwrap();
    assert_eq!(soon(rival).await.unwrap().term(), Term::new(2));
    assert!(slow.done.load(Ordering::Acquire), "before anybody else led");
}

#[tokio::test]
async fn a_request_that_outlives_the_grace_is_cut_off_and_its_outcome_called_unknown() {
    let store = store().await;
    let a = node_with_grace(BRIEF, "a", None, &store).await;
    let (app, slow) = slow(LeaderOnlyLayer::new(gate(&a)));
    let origin = serve(app).await;
    let leadership = elected(&a).await;
    let asked = tokio::spawn(async move { ask(&origin, "POST /orders", "", "x").await });
    soon(slow.entered.notified()).await;
    soon(leadership.resign()).await.unwrap();
    assert!(slow.dropped.load(Ordering::Acquire), "it was stopped before the lease was given back");
    let answer = soon(asked).await.unwrap();
    assert_eq!(status(&answer), 504);
    assert!(answer.contains("may have been executed") && !answer.contains("retry-after"), "{answer}");
}

#[tokio::test]
async fn a_service_may_keep_its_pass_for_what_follows_the_response() {
    let store = store().await;
    let a = node_with_grace(BRIEF, "a", None, &store).await;
    let (keep, kept) = std::sync::mpsc::channel();
    let work = async move |Extension(pass): Extension<Pass>| {
        let _ = keep.send(pass);
        "streaming"
    };
    let app = Router::new().route("/orders", post(work)).layer(LeaderOnlyLayer::new(gate(&a)));
    let origin = serve(app).await;
    let leadership = elected(&a).await;
    assert_eq!(status(&ask(&origin, "POST /orders", "", "x").await), 200);
    let pass = kept.recv().unwrap();
    let resigning = tokio::spawn(async move { leadership.resign().await });
    soon(pass.lost().cancelled()).await;
    soon(pass.cut_off()).await;
    assert!(!resigning.is_finished(), "waits for whoever has a pass");
    drop(pass);
    soon(resigning).await.unwrap().unwrap();
}
