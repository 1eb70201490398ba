//! Nodes come, go, fall silent, and come back.

use rustix::process::Signal;

use super::client::Events;
use super::stage::{Served, Stage, TTL, until};

fn state_of(node: &Served, id: &str) -> Option<String> {
    let nodes = node.get("/cluster/nodes").says(200);
    let found = nodes.as_array()?.iter().find(|node| node["node_id"] == id)?;
    found["state"].as_str().map(str::to_owned)
}

#[test]
fn a_node_that_dies_is_expired_and_another_leads() {
    let stage = Stage::new();
    let mut nodes = stage.cluster(&["a", "b", "c"], &["--ttl", TTL]);
    let mut events = Events::follow(nodes[2].address, "", None);
    nodes[0].child.kill().unwrap();
    let elected = until("another leads", || {
        let status = nodes[2].get("/cluster/status").says(200);
        Some(status).filter(|status| status["leader_id"].as_str().is_some_and(|leader| leader != "a"))
    });
    assert!(elected["term"].as_u64().unwrap() >= 2, "{elected}");
    events.until("node_expired", "a");
    until("it is shown", || (state_of(&nodes[1], "a")? == "expired").then_some(()));
    // And one that holds nothing: nobody wants anything of it, but it is gone all the same.
    let follower = usize::from(elected["leader_id"] == "b") + 1;
    let id = nodes[follower].id.clone();
    let mut events = Events::follow(nodes[3 - follower].address, "", None);
    nodes[follower].child.kill().unwrap();
    events.until("node_expired", &id);
}

#[test]
fn a_node_that_is_told_to_stop_hands_over_and_deregisters() {
    let stage = Stage::new();
    let mut nodes = stage.cluster(&["a", "b"], &[]);
    let mut events = Events::follow(nodes[1].address, "", None);
    nodes[0].signal(Signal::TERM);
    assert_eq!(nodes[0].code(), Some(0));
    events.until("leader_resigned", "a");
    events.until("node_left", "a");
    // Nobody waited for the ttl.
    nodes[1].until_ok("/leader");
    until("it is shown", || (state_of(&nodes[1], "a")? == "left").then_some(()));
}

#[test]
fn a_node_tells_that_its_store_is_away_and_that_it_is_back() {
    let stage = Stage::new();
    // Long enough from the first renewal that fails to the end for a busy machine to tell of both.
    let nodes = stage.cluster(&["a"], &["--ttl", "10s", "--renew-every", "200ms"]);
    let until_said = |words: &str| until(words, || nodes[0].said().contains(words).then_some(()));
    stage.place().take_away();
    until_said("the store does not answer, trying again: ");
    until_said("in jeopardy: unless the store answers within ");
    until_said("is over for this node: no renewal succeeded in time; it will stand again");
    stage.place().bring_back();
    until_said("the store answers again, after ");
}

#[test]
fn a_node_that_was_retired_while_it_was_stopped_registers_again_by_itself() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &["--ttl", TTL]);
    tenure_testkit::freeze(nodes[1].child.id());
    until("it is expired", || (state_of(&nodes[0], "b")? == "expired").then_some(()));
    nodes[1].signal(Signal::CONT);
    until("it is back", || (state_of(&nodes[0], "b")? == "live").then_some(()));
    nodes[1].until_ok("/ready");
}

#[test]
fn a_node_that_lost_the_store_says_what_it_last_knew_and_how_old_that_is() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &["--ttl", TTL]);
    // Every answer is asked for until it comes: on a busy machine a lease may lapse at any time.
    let known = nodes[1].until_ok("/cluster/leader").json();
    stage.place().take_away();
    let lost = |node: &Served| {
        let answer = node.get("/cluster/leader");
        (answer.status == 503 && answer.body.contains("this node has lost the store")).then_some(answer)
    };
    let problem = until("it has lost the store, and nobody is known to lead", || lost(&nodes[1]))
        .refuses(503, "nobody is known to lead");
    let last = (problem["last_leader_id"].as_str().unwrap(), problem["term"].as_u64().unwrap());
    assert!(
        ["a", "b"].contains(&last.0) && last.1 >= known["term"].as_u64().unwrap(),
        "{problem} after {known}"
    );
    for age in ["last_leader_age_ms", "known_ms_ago"] {
        let before = problem[age].as_u64().unwrap_or_else(|| panic!("no {age} in {problem}"));
        until(&format!("{age} rises"), || lost(&nodes[1])?.json()[age].as_u64().filter(|now| *now > before));
    }
    for node in &nodes {
        for path in ["/leader", "/ready", "/cluster/health"] {
            until(&format!("{path} says 503"), || (node.get(path).status == 503).then_some(()));
        }
        assert_eq!(node.get("/cluster/health").json()["status"], "unhealthy");
        let status = node.get("/cluster/status").says(200);
        assert_eq!(status["cluster_ready"], false, "{status}");
        assert_eq!(node.get("/live").status, 200, "a restart would not help");
    }
    nodes[0].get("/cluster/elections").refuses(503, "the store gave no answer");
    stage.place().bring_back();
    until("somebody leads again", || nodes.iter().find(|node| node.get("/leader").status == 200).map(|_| ()));
    for node in &nodes {
        node.until_ok("/ready");
        // What it reads first may still be the lease of before.
        until("it knows the new term", || {
            let status = node.get("/cluster/status").says(200);
            (status["leader_id"].is_string() && status["term"].as_u64()? >= 2).then_some(())
        });
    }
}
