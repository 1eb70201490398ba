//! Any name that Tenure accepts is a name on the store.

use std::sync::Arc;

use tenure_core::{MAX_NAME_BYTES, Namespace};
use tenure_store::{Claim, NodeInfo, Open, Options, Resign};

use super::cast::{Node, candidates, election, events, read, waiting};
use super::fixture::Fixture;

fn awkward() -> Vec<String> {
    let mut names: Vec<String> = [
        "reports",
        "Reports",
        "réports",
        "re\u{301}ports", // kept apart, however a store collates
        "it's",
        "\"quoted\"",
        "`ticked`",
        "back\\slash",
        "a;b",
        "'; DROP TABLE leases; --",
        "100%",
        "%",
        "_",
        "a_b",
        "a%b",
        "a*b",
        "?",
        "$1",
        ":name",
        "{}",
        "a b",
        "a\u{a0}b",
        "/",
        "a/b",
        "../a",
        "a//b",
        ".",
        "..",
        "#1",
        "a&b=c",
        "NULL",
        "null",
        "0",
        "日本語",
        "🗳",
        "ß",
        "ss",
    ]
    .map(String::from)
    .into();
    names.push("x".repeat(MAX_NAME_BYTES));
    names.push("é".repeat(MAX_NAME_BYTES / 2));
    names.push("🗳".repeat(MAX_NAME_BYTES / 4));
    names.push("'".repeat(MAX_NAME_BYTES));
    names
}

/// As election, as node, and as namespace.
pub async fn awkward_names_are_kept_apart_and_come_back_whole(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let mut nodes = Vec::new();
    for name in awkward() {
        let node = Node::new(&store, &name);
        let info = NodeInfo { hostname: name.clone(), ..node.opening().node };
        node.expect_opened(Open { node: info, ..node.opening() }).await;
        node.lead(&name).await;
        nodes.push(node);
    }
    let rival = Node::open(&store, "rival").await;
    for node in &nodes {
        let name = node.id.as_str();
        let seen = waiting(rival.send(Claim { priority: 1, ..rival.claim(name) }).await);
        assert_eq!(seen.holder.map(|holder| holder.node).as_ref(), Some(&node.id), "election {name:?}");
        assert_eq!(candidates(&store, name).await, ["rival"]);
        let resign = Resign { to: Some(rival.id.clone()), ..node.resignation(name) };
        store.resign(resign).await.expect("the store answers");
        rival.lead(name).await;
        for event in events(&store, name).await {
            assert_eq!(event.election, Some(election(name)));
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&event.data);
            assert!(parsed.is_ok_and(|data| data.is_object()), "election {name:?}: {}", event.data);
        }
    }
    let mut expected = awkward();
    expected.sort_unstable();
    let elections = store.elections().await.expect("the store answers").value;
    let listed: Vec<_> = elections.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(listed, expected, "listed by name, in the order of their bytes");

    for name in ["it's; --", "日本語 100%", &"n".repeat(MAX_NAME_BYTES)] {
        let namespace = Namespace::new(name).expect("the suite uses good names");
        let elsewhere = fixture.connect_with(Options { namespace, ..Options::default() }).await;
        assert_eq!(read(&elsewhere, "reports").await.holder, None);
        Node::open(&elsewhere, "a").await.lead("reports").await;
    }
}
