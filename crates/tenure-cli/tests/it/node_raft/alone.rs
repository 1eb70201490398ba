//! A node that is a member of its group, and is left without a majority.

use tenure_testkit::server::free_port;

use super::place::Witness;
use super::stage::{Stage, TTL, until};

#[test]
fn a_member_without_a_majority_says_how_old_its_word_is_and_the_group_says_nothing() {
    let stage = Stage::new();
    let peers: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", free_port())).collect();
    let group = format!("raft://{}", peers.join(","));
    let directory = stage.path("group");
    let start = |peer: &String| Witness::start(&group, peer, &directory);
    let mut others: Vec<Witness> = peers[1..].iter().map(start).collect();
    let data = stage.path("group/own").display().to_string();
    let node =
        stage.node("a", &["--ttl", TTL, "--store", &group, "--data", &data, "--raft-listen", &peers[0]]);
    node.until_ok("/leader");
    let known = || node.get("/cluster/status").says(200)["known_ms_ago"].as_u64();
    until("it has read who is there", || known().map(drop));

    others.iter_mut().for_each(Witness::kill);
    let problem = until("nobody is known to lead any more", || {
        let answer = node.get("/cluster/leader");
        (answer.status == 503).then(|| answer.refuses(503, "nobody is known to lead"))
    });
    assert_eq!(problem["last_leader_id"], "a");
    let known = problem["known_ms_ago"].as_u64().unwrap();
    until("that gets older", || {
        let status = node.get("/cluster/status").says(200);
        (status["known_ms_ago"].as_u64()? > known && status["is_leader"] == false).then_some(())
    });
    let asked = stage.tenure().args(["leader", "coordinator", "--store", &group]).output().unwrap();
    assert_eq!(asked.status.code(), Some(69), "no answer is better than an old one: {asked:?}");

    others.iter_mut().for_each(Witness::launch);
    node.until_ok("/leader");
    assert!(node.get("/cluster/status").says(200)["term"].as_u64().unwrap() > 1);
}
