//! Who is registered, and what was ever stood for.

use std::sync::Arc;

use tenure_core::Opening;
use tenure_store::{Labels, NodeInfo, NodeState, Open};

use super::cast::{Node, election, read};
use super::fixture::Fixture;

/// With all that they told about themselves.
pub async fn nodes_are_listed_by_id_with_their_state(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    assert!(store.nodes().await.expect("the store answers").value.is_empty());
    let (left, live) = (Node::open(&store, "c").await, Node::open(&store, "b").await);
    let silent = Node::open(&store, "d").await;
    left.close().await;

    let described = Node::new(&store, "a");
    let info = NodeInfo {
        id: described.id.clone(),
        hostname: String::from("höst \"1\""),
        address: Some(String::from("https://[::1]:8443/x?y='z'")),
        pid: u32::MAX,
        version: String::from("9.9.9-rc.1"),
        labels: Labels::parse(["zone=eu-1", "name='größe \"7\"'"]).expect("good labels"),
    };
    let open = Open { node: info.clone(), ..described.opening() };
    let opening = store.open(open).await.expect("the store answers").value;
    assert!(matches!(opening, Opening::Opened { .. }));
    let mut expected =
        vec![("a", NodeState::Live), ("b", NodeState::Live), ("c", NodeState::Left), ("d", NodeState::Live)];
    if fixture.candidates_judge().await {
        silent.lead("reports").await;
        live.send(live.claim_over("reports", silent.stamp())).await;
        expected[3].1 = NodeState::Expired;
    }
    let nodes = store.nodes().await.expect("the store answers").value;
    let states: Vec<_> = nodes.iter().map(|node| (node.info.id.as_str(), node.state)).collect();
    assert_eq!(states, expected);
    assert_eq!((&nodes[0].info, nodes[0].pulse.stamp), (&info, described.stamp()));

    let restarted = Node::open(&store, "c").await;
    let nodes = store.nodes().await.expect("the store answers").value;
    let entries: Vec<_> = nodes.iter().filter(|node| node.info.id == restarted.id).collect();
    assert_eq!(entries.len(), 1, "a node is listed once, with its newest session");
    assert_eq!((entries[0].session(), entries[0].state), (restarted.session, NodeState::Live));
}

/// Also those that are free, waited for, or ended.
pub async fn elections_are_listed_by_name_with_their_records(fixture: Arc<Fixture>) {
    let store = fixture.connect().await;
    let node = Node::open(&store, "a").await;
    for name in ["led", "free", "ended"] {
        node.lead(name).await;
    }
    node.resign("free").await;
    node.resign("ended").await;
    node.resign("never-stood-for").await;
    store.delete(election("ended"), false).await.expect("the store answers");

    let elections = store.elections().await.expect("the store answers").value;
    let names: Vec<_> = elections.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ended", "free", "led"]);
    for (name, listed) in elections {
        let record = read(&store, name.as_str()).await;
        assert_eq!((listed.term, listed.ended), (record.term, record.ended));
        assert_eq!(listed.holder.map(|holder| holder.term), record.holder.map(|holder| holder.term));
    }
}
