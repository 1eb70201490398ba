//! A node whose health check fails, as everybody is told of it.

use serde_json::Value;

use super::stage::{Served, Stage, until};

/// What a command says.
fn said(stage: &Stage, arguments: &[&str]) -> String {
    let output = stage.tenure().args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a node is told of the second one, once that has this health.
fn second(node: &Served, unhealthy: bool) -> Value {
    until("its health is known", || {
        let mut listed = node.get("/cluster/nodes").says(200);
        let second = listed.as_array_mut().unwrap().remove(1);
        (second["problem"].is_string() == unhealthy).then_some(second)
    })
}

#[test]
fn status_nodes_history_and_metrics_tell_of_a_failing_health_check() {
    let stage = Stage::new();
    let first = stage.node("a", &[]);
    first.until_ok("/leader");
    let well = stage.path("well");
    std::fs::write(&well, "").unwrap();
    let check = format!("test -e {}", well.display());
    // Nothing of it is too slow on a busy machine: not a check, not the node's look at it, and not a renewal.
    let health = ["--health-cmd", &check, "--health-every", "100ms", "--health-timeout", "1m"];
    let other = stage.node("b", &[&["--ttl", "30s", "--renew-every", "200ms"], &health[..]].concat());
    let healthy = |node: &Served| {
        let metrics = node.get("/metrics").body;
        metrics.lines().find_map(|line| line.strip_prefix("tenure_node_healthy ")?.parse().ok()) == Some(1)
    };
    until("both are there", || (first.get("/cluster/status").says(200)["cluster_size"] == 2).then_some(()));
    assert!(second(&first, false)["unhealthy_since"].is_null() && healthy(&other));
    let before = said(&stage, &["events"]);
    assert!(!before.contains("healthy"), "a start is not told as a recovery: {before}");

    std::fs::remove_file(&well).unwrap();
    let problem = format!("`{check}` ended with exit status: 1");
    let listed = second(&first, true);
    assert_eq!(
        (&listed["problem"], &listed["state"]),
        (&Value::from(problem.as_str()), &Value::from("live"))
    );
    assert!(listed["unhealthy_since"].as_str().unwrap().ends_with('Z'), "{listed}");
    assert_eq!(first.get("/cluster/status").says(200)["nodes"][1]["problem"], problem.as_str());
    assert!(!healthy(&other) && healthy(&first));
    let line: Value = serde_json::from_str(said(&stage, &["status", "--json"]).trim()).unwrap();
    assert_eq!(line["unhealthy"][0]["node_id"], "b");
    assert_eq!(line["unhealthy"][0]["problem"], problem.as_str());
    assert!(line["unhealthy"][0]["unhealthy_since"].is_string() && line["unhealthy"][1].is_null(), "{line}");
    let nodes = said(&stage, &["nodes", "--json"]);
    let row: Value = serde_json::from_str(nodes.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&row["problem"], &row["state"]), (&listed["problem"], &listed["state"]));
    for command in ["status", "nodes"] {
        let text = said(&stage, &[command]);
        assert!(text.contains("b is unhealthy since ") && text.contains(&problem), "{text}");
    }
    let table = said(&stage, &["nodes"]);
    assert!(table.lines().any(|row| row.starts_with("b ") && row.contains(" unhealthy ")), "{table}");

    std::fs::write(&well, "").unwrap();
    second(&first, false);
    let history: Vec<Value> =
        said(&stage, &["events", "--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = history
        .iter()
        .filter(|event| event["node"] == "b")
        .map(|event| (event["event"].as_str().unwrap(), event["data"]["problem"].as_str()))
        .filter(|(event, _)| event.ends_with("healthy"))
        .collect();
    assert_eq!(told, [("node_unhealthy", Some(problem.as_str())), ("node_healthy", None)]);
}
