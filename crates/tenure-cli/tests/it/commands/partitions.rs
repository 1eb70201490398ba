//! Work that is divided: task lists, and who owns which partition.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure::{Node, Partition, Store};

use super::stage::{Stage, fields, until};

const LIST: &str = "billing/invoices";

#[test]
fn a_task_list_is_made_changed_paused_and_dropped() {
    let stage = Stage::new();
    stage.tenure(&["partitions", "show", LIST]).refused(1, "there is no task list `billing/invoices`");
    let made = stage.tenure(&["partitions", "create", LIST, "--count", "3"]).done();
    assert_eq!(made.out, "`billing/invoices` has 3 partitions\n");
    stage.tenure(&["partitions", "create", LIST, "--count", "4"]).refused(1, "change that one");
    stage.tenure(&["partitions", "resize", LIST, "--count", "5"]).done();
    for too_many in ["1000001", "4294967295"] {
        let words = format!("`{too_many}` is not a number of partitions from 0 to 1000000");
        stage.tenure(&["partitions", "resize", LIST, "--count", too_many]).refused(2, &words);
    }
    let row = stage.tenure(&["partitions", "list", "--json"]).done().json();
    assert_eq!(fields(&row), ["owned", "partitions", "paused", "revoking", "task_list", "vacant", "weight"]);
    assert_eq!((&row["partitions"], &row["vacant"], &row["paused"]), (&json!(5), &json!(5), &json!(false)));
    stage.tenure(&["partitions", "pause", LIST]).done();
    assert!(stage.tenure(&["partitions", "list"]).done().out.contains("paused"));
    stage.tenure(&["partitions", "pause", LIST, "--resume"]).done();
    assert!(!stage.tenure(&["partitions", "list"]).done().out.contains("paused"));
    stage.tenure(&["partitions", "move", LIST, "5", "--to", "a"]).refused(1, "counted from 0");
    let drained = stage.tenure(&["partitions", "drain", "typo"]).done();
    assert!(drained.err.contains("warning: no node `typo` is registered"), "{drained:?}");
    stage.tenure(&["partitions", "drain", "typo", "--undo"]).done();
    let elsewhere = stage.tenure(&["partitions", "list", "--election", "other"]).done();
    assert_eq!(elsewhere.out.lines().count(), 1, "another election divides other work: {elsewhere:?}");
    stage.tenure(&["partitions", "drop", LIST]).done();
    assert_eq!(stage.tenure(&["partitions", "list", "--json"]).done().out, "");
    stage.tenure(&["partitions", "drop", LIST]).refused(1, "there is no task list");
}

#[test]
fn what_cannot_be_is_a_matter_of_usage() {
    let stage = Stage::new();
    stage.tenure(&["partitions", "create", "", "--count", "3"]).refused(2, "the task list name is empty");
    stage.tenure(&["partitions", "create", LIST]).refused(2, "--count");
    stage
        .tenure(&["partitions", "create", LIST, "--count", "1", "--needs", "gpu"])
        .refused(2, "--needs NAME=VALUE");
}

/// A node that loses nothing, however busy the machine is.
async fn start(id: &str, store: &Arc<dyn Store>) -> Node {
    let (ttl, renewals) = (Duration::from_secs(60), Duration::from_millis(200));
    Node::builder(id).ttl(ttl).renew_every(renewals).start(Arc::clone(store)).await.unwrap()
}

fn work(node: &Node) {
    let each = node.partitions(LIST).unwrap().process_each(async |partition: Partition| {
        partition.revoked().await;
        Ok::<_, String>(())
    });
    tokio::spawn(each);
}

/// Who owns each partition, by what the command says.
fn owners(stage: &Stage) -> Vec<Value> {
    let rows = stage.tenure(&["partitions", "show", LIST, "--json"]).done().lines();
    rows.into_iter().map(|row| row["node_id"].clone()).collect()
}

#[test]
fn it_is_seen_who_owns_what_and_people_move_and_drain() {
    let stage = Stage::new();
    stage.tenure(&["partitions", "create", LIST, "--count", "4"]).done();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let _nodes = runtime.block_on(async {
        let nodes =
            [start("c", &stage.store).await, start("a", &stage.store).await, start("b", &stage.store).await];
        let election = nodes[0].election("coordinator").unwrap();
        tokio::spawn(async move { election.coordinate().await });
        nodes[1..].iter().for_each(work);
        nodes
    });
    let share = |node: &str| owners(&stage).iter().filter(|owner| **owner == node).count();
    until("all is divided", || (share("a"), share("b")) == (2, 2));
    let row = stage.tenure(&["partitions", "show", "--json"]).done().lines().remove(0);
    assert_eq!(fields(&row), ["node_id", "partition", "state", "task_list", "term"]);
    assert_eq!((&row["state"], &row["task_list"]), (&json!("owned"), &json!(LIST)));
    let list = stage.tenure(&["partitions", "list"]).done().out;
    assert!(list.contains("settled"), "{list}");

    let number = owners(&stage).iter().position(|owner| owner == "b").unwrap();
    stage.tenure(&["partitions", "move", LIST, &number.to_string(), "--to", "a"]).done();
    until("it has moved", || owners(&stage)[number] == "a");
    stage.tenure(&["partitions", "drain", "a"]).done();
    until("it is drained, of what was moved to it too", || share("b") == 4);
    stage.tenure(&["partitions", "drain", "a", "--undo"]).done();
    until("it has its part again", || share("a") == 2);
}
