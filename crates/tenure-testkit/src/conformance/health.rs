//! What a node reports of its own health: shown with the node, and told when it changes.

use std::sync::Arc;

use tenure_core::Opening;
use tenure_store::{EventKind, EventQuery, HealthReport, NodeRecord, Open, Problem, Store, StoreError};

use super::cast::{Node, holder};
use super::fixture::Fixture;

async fn report(node: &Node, number: u64, problem: Option<&str>) -> Result<bool, StoreError> {
    let problem = problem.map(Problem::new);
    let report = HealthReport { session: node.session, number, problem };
    Ok(node.store.report_health(report).await?.value)
}

async fn tell(node: &Node, number: u64, problem: Option<&str>) -> bool {
    report(node, number, problem).await.expect("the session is live and the store answers")
}

async fn record(store: &Arc<dyn Store>, node: &Node) -> NodeRecord {
    let nodes = store.nodes().await.expect("the store answers").value;
    nodes.into_iter().find(|record| record.info.id == node.id).expect("it is registered")
}

async fn problem(store: &Arc<dyn Store>, node: &Node) -> Option<String> {
    record(store, node).await.unhealthy.map(|unhealthy| unhealthy.problem.to_string())
}

/// What the history says of a node's health, and when it came and went.
async fn story(store: &Arc<dyn Store>, node: &Node) -> Vec<(EventKind, String)> {
    let events = store.events(EventQuery::default()).await.expect("the store answers").value;
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "in order: {ids:?}");
    let of_node = events.into_iter().filter(|event| event.node.as_ref() == Some(&node.id));
    of_node
        .filter(|event| event.election.is_none())
        .map(|event| {
            assert_eq!((event.sequence, event.term.number()), (0, 0), "{event:?}");
            let data: serde_json::Value = serde_json::from_str(&event.data).expect("an object");
            (event.kind, data["problem"].as_str().unwrap_or_default().to_owned())
        })
        .collect()
}

/// Quotes and letters of any script included.
pub async fn a_problem_is_shown_with_its_node_and_told_once(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let (node, other) = (Node::open(&store, "a").await, Node::open(&store, "b").await);
    assert_eq!(problem(&store, &node).await, None, "a new session is healthy");
    assert!(!tell(&node, 1, None).await, "that is known");

    let first = r#"`psql -c "SELECT 'größe \ 日本語'"` ended with 1"#;
    assert!(tell(&node, 2, Some(first)).await);
    assert!(!tell(&node, 2, Some(first)).await, "the same report again");
    assert!(!tell(&node, 3, Some(first)).await, "that is known");
    let shown = record(&store, &node).await.unhealthy.expect("it is shown");
    assert_eq!(shown.problem.as_str(), first);
    assert_eq!(problem(&store, &other).await, None, "that is another node");

    // Another problem is no other state: it is shown, and the history does not grow by it.
    let longest = "🦀".repeat(Problem::MOST);
    assert!(!tell(&node, 4, Some(&longest)).await);
    let changed = record(&store, &node).await.unhealthy.expect("it is shown");
    assert_eq!((changed.problem, changed.since), (Problem::new(&longest), shown.since));

    assert!(tell(&node, 5, None).await);
    assert!(!tell(&node, 6, None).await, "that is known");
    assert_eq!(problem(&store, &node).await, None);
    assert!(tell(&node, 7, Some("again")).await);
    assert!(record(&store, &node).await.unhealthy.expect("it is shown").since >= shown.since);

    let expected = [
        (EventKind::NodeJoined, ""),
        (EventKind::NodeUnhealthy, first),
        (EventKind::NodeHealthy, ""),
        (EventKind::NodeUnhealthy, "again"),
    ];
    assert_eq!(story(&store, &node).await, expected.map(|(kind, problem)| (kind, problem.to_owned())));
}

/// Whatever the one before had reported.
pub async fn a_new_session_is_healthy(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    assert!(tell(&node, 9, Some("no disk")).await);
    // Repeating the request for the same session changes nothing.
    node.expect_opened(node.opening()).await;
    assert_eq!(problem(&store, &node).await.as_deref(), Some("no disk"));

    let next = Node::new(&store, "a");
    let open = Open { supersedes: Some(node.session), ..next.opening() };
    let opening = store.open(open).await.expect("the store answers").value;
    assert!(matches!(opening, Opening::Opened { .. }), "{opening:?}");
    assert_eq!(problem(&store, &next).await, None);
    assert!(tell(&next, 1, Some("no disk")).await, "its reports are counted anew");
    assert_eq!(problem(&store, &next).await.as_deref(), Some("no disk"));
}

/// As every other verb under it is.
pub async fn a_report_under_a_session_that_is_over_is_refused(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    node.close().await;
    let before = story(&store, &node).await;
    for session in [node, Node::new(&store, "b")] {
        let refused = report(&session, 1, Some("no disk")).await;
        assert!(matches!(refused, Err(StoreError::SessionLost)), "{refused:?}");
    }
    let next = Node::open(&store, "a").await;
    assert_eq!(problem(&store, &next).await, None);
    let after = story(&store, &next).await;
    assert_eq!(after[..before.len()], before);
    assert_eq!(after[before.len()..], [(EventKind::NodeJoined, String::new())]);
}

/// A request that was given up may still arrive.
pub async fn a_report_that_was_overtaken_changes_nothing(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    assert!(tell(&node, 1, Some("no disk")).await);
    assert!(tell(&node, 3, None).await);
    assert!(!tell(&node, 2, Some("no network")).await, "it is late");
    assert_eq!(problem(&store, &node).await, None);
    assert_eq!(story(&store, &node).await.len(), 3);
}

/// It is for people to read: the node itself gives its leases up.
pub async fn it_says_nothing_of_leases_and_signs_of_life(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    let term = node.lead("reports").await;
    let pulse = record(&store, &node).await.pulse.stamp;
    assert!(tell(&node, 1, Some("no disk")).await);
    assert_eq!(record(&store, &node).await.pulse.stamp, pulse);
    assert_eq!(holder(&store, "reports").await.map(|holder| holder.term), Some(term));
    node.renew().await;
    assert_eq!(problem(&store, &node).await.as_deref(), Some("no disk"), "a renewal changes nothing");
}
