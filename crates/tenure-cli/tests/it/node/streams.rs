//! The history as a stream.

use super::client::{Event, Events};
use super::stage::Stage;
use rustix::process::Signal;

/// Everything up to an event of this kind about this node.
fn all_until(stream: &mut Events, kind: &str, node: &str) -> Vec<Event> {
    let mut all = Vec::new();
    loop {
        let event = stream.next().unwrap_or_else(|| panic!("the stream ended before {kind} of {node}"));
        let found = event.kind == kind && event.data["node"] == node;
        all.push(event);
        if found {
            return all;
        }
    }
}

#[test]
fn a_stream_goes_on_where_it_was_left_and_misses_nothing() {
    let stage = Stage::new();
    let a = stage.node("a", &[]);
    a.until_ok("/leader");
    let mut first = Events::follow(a.address, "?since=0", None);
    let b = stage.node("b", &[]);
    let mut streamed = all_until(&mut first, "node_joined", "b");
    drop(first);
    // Meanwhile things happen that nobody follows.
    let c = stage.node("c", &[]);
    c.until_ok("/follower");
    drop(b);
    // From any node: the history is the store's.
    let last = streamed.last().map(|event| event.id);
    let mut resumed = Events::follow(c.address, "", last);
    assert_eq!(a.transfer("c").status, 202);
    streamed.extend(all_until(&mut resumed, "leader_elected", "c"));
    let elected = streamed.last().unwrap();
    assert_eq!(
        (&elected.data["term"], &elected.data["election"]),
        (&serde_json::json!(2), &serde_json::json!("coordinator"))
    );
    // Both streams together are the history: every event, once, in order, and as it is listed.
    let listed = a.get("/cluster/events?since=0&limit=1000").says(200);
    let listed: Vec<_> = listed.as_array().unwrap().iter().take(streamed.len()).cloned().collect();
    assert_eq!(streamed.iter().map(|event| event.data.clone()).collect::<Vec<_>>(), listed);
    for event in &streamed {
        assert_eq!(
            (&event.data["id"], &event.data["event"]),
            (&event.id.into(), &event.kind.as_str().into())
        );
    }
    let joined = |event: &&Event| event.kind == "node_joined";
    let joined: Vec<_> = streamed.iter().filter(joined).map(|event| &event.data["node"]).collect();
    assert_eq!(joined, ["a", "b", "c"]);
    // From the beginning, and only of one election.
    let mut whole = Events::follow(a.address, "?since=0&election=coordinator", None);
    let kinds: Vec<_> = std::iter::from_fn(|| whole.next()).map(|event| event.kind).take(6).collect();
    assert_eq!(
        kinds,
        [
            "election_started",
            "leader_elected",
            "transfer_requested",
            "leader_resigned",
            "leader_elected",
            "leader_changed"
        ]
    );
}

#[test]
fn streams_end_when_their_node_stops() {
    let stage = Stage::new();
    let mut node = stage.node("a", &[]);
    node.until_ok("/leader");
    let stream = Events::follow(node.address, "", None);
    node.signal(Signal::TERM);
    stream.end();
    assert_eq!(node.code(), Some(0));
}
