//! `tenure run --listen` serves the same API.

use rustix::process::Signal;

use super::client::Events;
use super::stage::{Stage, until};

#[test]
fn a_program_that_is_run_has_the_same_api_beside_it() {
    let stage = Stage::new();
    let run = |id: &str| {
        let mut command = stage.tenure();
        command.args([
            "run",
            "--election",
            "nightly",
            "--node",
            id,
            "--ttl",
            "1m",
            "--listen",
            "127.0.0.1:0",
            "--",
            "sleep",
            "1000",
        ]);
        stage.serve(id, command)
    };
    let mut first = run("a");
    first.until_ok("/leader");
    let second = run("b");
    let status = until("it follows", || {
        let status = second.get("/cluster/status").says(200);
        let follows = status["state"] == "follower" && status["leader_id"] == "a";
        (follows && status["cluster_size"] == 2).then_some(status)
    });
    assert_eq!(status["election"], "nightly");
    let mut events = Events::follow(second.address, "", None);
    first.signal(Signal::TERM);
    assert_eq!(first.code(), Some(128 + 15));
    events.until("leader_elected", "b");
    second.until_ok("/leader");
}
