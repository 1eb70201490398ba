//! The health probe, as the store shows it to others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{EventKind, EventQuery, Node, NodeBuilder, NodeEvent, NodeRecord, Problem, SessionId, Store};

use crate::common::{Manner, Wrapped, memory, soon, start};

/// What the probe of a test answers.
#[derive(Clone, Default)]
struct Application(Arc<Mutex<Option<&'static str>>>);

impl Application {
    fn is(&self, problem: Option<&'static str>) {
        *self.0.lock().unwrap() = problem;
    }

    fn node(&self) -> NodeBuilder {
        let application = self.clone();
        builder().health(move || {
            let problem = *application.0.lock().unwrap();
            async move { problem.map_or(Ok(()), Err) }
        })
    }
}

/// A node whose probe runs every five seconds. It may take ten, and nothing lapses, however busy the machine is.
fn builder() -> NodeBuilder {
    let (renewals, reports) = (Duration::from_millis(200), Duration::from_millis(100));
    Node::builder("a").ttl(Duration::from_secs(30)).renew_every(renewals).poll_every(reports)
}

async fn record(store: &Arc<dyn Store>) -> NodeRecord {
    store.nodes().await.unwrap().value.remove(0)
}

/// Waits until the store shows this problem; under which session.
async fn until_shown(store: &Arc<dyn Store>, problem: Option<&str>) -> SessionId {
    soon(async {
        loop {
            let record = record(store).await;
            let shown = record.unhealthy.as_ref().map(|unhealthy| unhealthy.problem.as_str());
            if shown == problem {
                return record.session();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
}

async fn story(store: &Arc<dyn Store>) -> Vec<(EventKind, String)> {
    let events = store.events(EventQuery::default()).await.unwrap().value;
    let health = [EventKind::NodeUnhealthy, EventKind::NodeHealthy];
    let told = events.into_iter().filter(|event| health.contains(&event.kind));
    told.map(|event| (event.kind, event.data)).collect()
}

#[tokio::test]
async fn a_failing_probe_is_shown_with_its_reason_and_in_the_history() {
    let (store, application) = (memory(), Application::default());
    let node = start(application.node(), &store).await;
    let mut events = node.subscribe();
    // Elected, it has passed; and nothing was reported, since a new session is healthy.
    drop(soon(node.election("reports").unwrap().elected()).await.unwrap());
    assert_eq!(story(&store).await, []);

    application.is(Some("the disk is full"));
    until_shown(&store, Some("the disk is full")).await;
    application.is(Some("the disk is gone"));
    until_shown(&store, Some("the disk is gone")).await;
    application.is(None);
    until_shown(&store, None).await;
    let expected = [
        (EventKind::NodeUnhealthy, String::from(r#"{"problem":"the disk is full"}"#)),
        (EventKind::NodeHealthy, String::from("{}")),
    ];
    assert_eq!(story(&store).await, expected);

    let mut heard = Vec::new();
    while heard.len() < 2 {
        match soon(events.next()).await {
            Some(event @ (NodeEvent::NodeUnhealthy { .. } | NodeEvent::NodeHealthy)) => heard.push(event),
            Some(_) => {}
            None => panic!("the node ended: {heard:?}"),
        }
    }
    let problem = Problem::new("the disk is full");
    assert_eq!(heard, [NodeEvent::NodeUnhealthy { problem }, NodeEvent::NodeHealthy]);
}

#[tokio::test]
async fn a_probe_that_says_no_or_hangs_is_shown_as_well() {
    let store = memory();
    let no = start(builder().health(async || false), &store).await;
    until_shown(&store, Some("the application's health probe failed")).await;
    soon(no.close()).await;
    let _hangs = start(builder().health(std::future::pending::<bool>), &store).await;
    until_shown(&store, Some("the application's health probe has not answered in time")).await;
}

#[tokio::test]
async fn a_report_is_repeated_until_the_store_has_it() {
    let (wrapped, application) = (Wrapped::new(memory()), Application::default());
    let store = wrapped.store();
    application.is(Some("no network"));
    wrapped.set("report_health", Manner::Refuses);
    let _node = start(application.node(), &store).await;
    crate::common::until(|| wrapped.count("report_health") > 2).await;
    assert!(record(&store).await.unhealthy.is_none());
    wrapped.set("report_health", Manner::Dutiful);
    until_shown(&store, Some("no network")).await;
    assert_eq!(story(&store).await.len(), 1);
}

#[tokio::test]
async fn a_new_session_is_healthy_until_its_node_reports_a_problem() {
    let (store, application) = (memory(), Application::default());
    application.is(Some("no network"));
    let _node = start(application.node(), &store).await;
    let first = until_shown(&store, Some("no network")).await;
    // As if it had been silent for too long. It registers again once it is healthy.
    soon(store.close(first, Default::default())).await.unwrap();
    application.is(None);
    assert_ne!(until_shown(&store, None).await, first);
    application.is(Some("no network"));
    until_shown(&store, Some("no network")).await;
}

#[tokio::test]
async fn a_report_without_an_answer_holds_up_no_renewal() {
    let (wrapped, application) = (Wrapped::new(memory()), Application::default());
    let store = wrapped.store();
    wrapped.set("report_health", Manner::Hangs);
    application.is(Some("no network"));
    // The first probe runs at once, and nothing lapses.
    let builder = application.node().ttl(Duration::from_secs(3600)).renew_every(Duration::from_millis(50));
    let _node = start(builder, &store).await;
    crate::common::until(|| wrapped.count("report_health") > 0).await;
    let (session, renewals) = (record(&store).await.session(), wrapped.count("renew"));
    crate::common::until(|| wrapped.count("renew") > renewals + 20).await;
    assert_eq!(record(&store).await.session(), session, "it was renewed in time");
}
