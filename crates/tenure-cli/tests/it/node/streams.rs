//! The history as a stream.

use super::client::Events;
use super::stage::Stage;
use rustix::process::Signal;

#[test]
fn a_stream_goes_on_where_it_was_left_and_misses_nothing() {
    let stage = Stage::new();
    let a = stage.node("a", &[]);
    a.until_ok("/leader");
    let mut first = Events::follow(a.address, "", None);
    let b = stage.node("b", &[]);
    let joined = first.until("node_joined", "b");
    drop(first);
    // Meanwhile things happen that nobody follows.
    let c = stage.node("c", &[]);
    c.until_ok("/follower");
    drop(b);
    // From any node: the history is the store's.
    let mut resumed = Events::follow(c.address, "", Some(joined.id));
    let next = resumed.next().unwrap();
    assert_eq!((next.kind.as_str(), &next.data["node"]), ("node_joined", &serde_json::json!("c")));
    assert_eq!(next.data["id"], next.id);
    assert_eq!(a.order("/cluster/transfer", r#"{"to":"c"}"#).status, 202);
    let elected = resumed.until("leader_elected", "c");
    assert_eq!(
        (&elected.data["term"], &elected.data["election"]),
        (&serde_json::json!(2), &serde_json::json!("coordinator"))
    );
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
