//! Programs of other languages work on a node's partitions.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::client::{Event, Events, ask};
use super::stage::{Served, Stage, TOKEN, until};

pub const LIST: &str = "jobs/parts";

pub fn coordinator(stage: &Stage) -> Served {
    let node = stage.node("boss", &["--ttl", "2s", "--task-list", "jobs/parts=2"]);
    node.until_ok("/leader");
    node
}

pub fn worker(stage: &Stage, id: &str, ttl: &str) -> Served {
    stage.node(id, &["--ttl", ttl, "--eligible=false", "--work", LIST])
}

/// A program is there.
fn program(node: &Served) -> Events {
    let body = json!({"task_list": LIST}).to_string();
    let headers = [("Authorization", format!("Bearer {TOKEN}")), ("Content-Length", body.len().to_string())];
    Events::open(node.address, "POST", "/cluster/partitions/work", &headers, &body)
}

/// Waits for word of this kind.
fn next(events: &mut Events, kind: &str) -> Value {
    loop {
        let Event { kind: told, data, .. } = events.next().expect("the stream goes on");
        if told == kind {
            return data;
        }
        assert_eq!(told, "lease_renewed", "{data}");
    }
}

fn release(node: &Served, told: &Value) -> super::client::Answer {
    let body = json!({"task_list": LIST, "partition": told["partition"], "term": told["term"]});
    node.order("/cluster/partitions/release", &body.to_string())
}

#[test]
fn a_partition_is_given_to_another_node_when_the_program_says_that_it_has_stopped() {
    let stage = Stage::new();
    let boss = coordinator(&stage);
    let mut b = worker(&stage, "b", "20s");
    assert_eq!(b.get("/cluster/partitions/mine").says(200), json!([]), "nobody is there to work");
    let mut first = program(&b);
    let assigned = [next(&mut first, "partition_assigned"), next(&mut first, "partition_assigned")];
    for told in &assigned {
        assert_eq!((&told["task_list"], &told["state"]), (&json!(LIST), &json!("assigned")));
        let left = told["expires_in_ms"].as_u64().unwrap();
        assert!(left > 0 && left <= 20_000 && told["deadline_boot_ms"].as_u64().unwrap() > left, "{told}");
    }
    let mine = b.get("/cluster/partitions/mine?task_list=jobs/parts").says(200);
    assert_eq!(mine.as_array().unwrap().len(), 2);
    let work = json!({"task_list": LIST}).to_string();
    b.order("/cluster/partitions/work", &work).refuses(409, "another program works on");
    boss.order("/cluster/partitions/work", &work).refuses(409, "start it with --work");
    release(&b, &assigned[0]).refuses(409, "was not revoked");
    // Another comes, and waits until the first has stopped.
    let c = worker(&stage, "c", "20s");
    let mut second = program(&c);
    let revoked = next(&mut first, "partition_revoked");
    assert_eq!(revoked["state"], "revoked");
    assert_eq!(c.get("/cluster/partitions/mine").says(200), json!([]));
    assert_eq!(release(&b, &revoked).says(200)["status"], "ok");
    assert_eq!(next(&mut first, "partition_released")["partition"], revoked["partition"]);
    let given = next(&mut second, "partition_assigned");
    assert_eq!(given["partition"], revoked["partition"]);
    assert!(given["term"].as_u64() > revoked["term"].as_u64(), "{given}");
    release(&b, &revoked).refuses(409, "there is nothing to release");
    // What is counted.
    let value = |node: &Served, series: &str| {
        let text = node.get("/metrics").body;
        text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse::<f64>().ok())
    };
    until("the rebalances are measured", || {
        value(&boss, "tenure_rebalance_seconds_count").filter(|count| *count >= 2.0)
    });
    until("all moves are counted", || {
        value(&boss, "tenure_partition_moves_total").filter(|moves| *moves == 3.0)
    });
    assert_eq!(value(&b, "tenure_partitions{state=\"assigned\"}"), Some(1.0));
    // A node that is told to end waits for its program too.
    b.signal(Signal::TERM);
    let last = next(&mut first, "partition_revoked");
    assert_eq!(release(&b, &last).status, 200);
    assert_eq!(b.code(), Some(0));
    assert_eq!(next(&mut second, "partition_assigned")["partition"], last["partition"]);
}

#[test]
fn a_program_that_is_gone_without_a_word_costs_its_node_the_session_and_others_go_on() {
    let stage = Stage::new();
    let _boss = coordinator(&stage);
    let b = worker(&stage, "b", "2s");
    let mut gone = program(&b);
    let told = [next(&mut gone, "partition_assigned"), next(&mut gone, "partition_assigned")];
    drop(gone);
    let c = worker(&stage, "c", "2s");
    let mut program = program(&c);
    for _ in told {
        next(&mut program, "partition_assigned");
    }
    let joined = |event: &&Value| event["event"] == "node_joined" && event["node"] == "b";
    until("the node is there again, with another session", || {
        let events = c.get("/cluster/events").says(200);
        (events.as_array().unwrap().iter().filter(joined).count() > 1).then_some(())
    });
}

#[test]
fn only_who_has_the_token_works_or_says_that_work_has_stopped() {
    let stage = Stage::new();
    let b = worker(&stage, "b", "20s");
    for path in ["/cluster/partitions/work", "/cluster/partitions/release"] {
        ask(b.address, "POST", path, &[], "{}").refuses(401, "the token");
        b.order(path, "{}").refuses(400, "the request makes no sense");
    }
}
