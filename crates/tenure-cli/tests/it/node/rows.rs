//! Every row of the HTTP contract.

use serde_json::Value;

use super::client::ask;
use super::stage::{Stage, until};

#[test]
fn every_node_tells_who_leads_and_who_is_there() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &["--label", "zone=eu-1,rack=7", "--min-nodes", "2"]);
    for node in &nodes {
        let answer = until("it has read when the term began", || {
            Some(node.get("/cluster/status"))
                .filter(|answer| answer.json()["lease"]["acquired_at"].is_string())
        });
        let status = answer.says(200);
        assert_eq!(status["node_id"], node.id.as_str());
        assert_eq!(status["state"], if node.id == "a" { "leader" } else { "follower" });
        assert_eq!(status["is_leader"], node.id == "a");
        assert_eq!((&status["leader_id"], &status["term"]), (&Value::from("a"), &Value::from(1)));
        assert_eq!(
            (&status["cluster_size"], &status["cluster_ready"]),
            (&Value::from(2), &Value::from(true))
        );
        assert!(status["known_ms_ago"].as_u64().unwrap() < 3_600_000);
        let lease = &status["lease"];
        assert_eq!((&lease["leader_id"], &lease["term"]), (&Value::from("a"), &Value::from(1)));
        assert_eq!(lease["api_url"], format!("http://{}", nodes[0].address));
        let moment = |name: &str| lease[name].as_str().unwrap_or_default().to_owned();
        assert!(
            moment("acquired_at") < moment("expires_at") && moment("renewed_at") < moment("expires_at"),
            "{lease}"
        );
        assert!(!moment("acquired_at").is_empty() && !lease["hostname"].as_str().unwrap().is_empty());
        assert_eq!((answer.header("tenure-term"), answer.header("tenure-leader")), (Some("1"), Some("a")));

        let leader = node.get("/cluster/leader").says(200);
        assert_eq!((&leader["leader_id"], &leader["term"]), (&Value::from("a"), &Value::from(1)));
        assert_eq!(leader["api_url"], format!("http://{}", nodes[0].address));
        let (age, left) = (leader["age_ms"].as_u64().unwrap(), leader["expires_in_ms"].as_u64().unwrap());
        assert!(age < 3_600_000 && left > 0 && left <= 3_600_000, "{leader}");

        let listed = node.get("/cluster/nodes").says(200);
        let ids: Vec<_> =
            listed.as_array().unwrap().iter().map(|node| node["node_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(listed[1]["labels"], serde_json::json!({"zone": "eu-1", "rack": "7"}));
        assert_eq!(
            (&listed[1]["state"], &listed[1]["version"]),
            (&Value::from("live"), &Value::from(env!("CARGO_PKG_VERSION")))
        );
        assert_eq!(listed[1]["pid"], nodes[1].child.id());

        let elections = node.get("/cluster/elections").says(200);
        assert_eq!(elections[0]["election"], "coordinator");
        assert_eq!(elections[0]["leader_id"], "a");
        assert_eq!(node.get("/cluster/partitions").says(200), serde_json::json!([]));
    }
}

#[test]
fn task_lists_that_a_node_is_told_of_are_made_and_their_partitions_shown() {
    let stage = Stage::new();
    let partitions = |node: &super::stage::Served, count: usize| {
        until("it is arranged", || {
            let rows = node.get("/cluster/partitions").says(200);
            (rows.as_array().unwrap().len() == count).then_some(rows)
        })
    };
    let first = stage.node("a", &["--task-list", "billing/invoices=2,media/encode=1"]);
    let vacant = |list: &str, partition: u32| serde_json::json!({"task_list": list, "partition": partition, "state": "vacant", "node_id": null, "term": 0});
    let expected = [vacant("billing/invoices", 0), vacant("billing/invoices", 1), vacant("media/encode", 0)];
    assert_eq!(partitions(&first, 3), Value::from(expected.to_vec()));
    // Another is told of more, and what it is not told of stays.
    let second = stage.node("b", &["--task-list", "billing/invoices=4"]);
    partitions(&second, 5);
    let refused = stage.tenure().args(["node", "--task-list", "billing/invoices"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("billing/invoices=64"), "{refused:?}");
}

#[test]
fn a_cluster_is_degraded_until_enough_nodes_live() {
    let stage = Stage::new();
    let first = stage.node("a", &["--min-nodes", "2"]);
    first.until_ok("/leader");
    first.until_ok("/cluster/health");
    let health = first.get("/cluster/health").says(200);
    assert_eq!(
        (&health["status"], &health["cluster_ready"]),
        (&Value::from("degraded"), &Value::from(false))
    );
    assert_eq!(
        (&health["clustering"], &health["version"]),
        (&Value::from("enabled"), &Value::from(env!("CARGO_PKG_VERSION")))
    );
    // A cluster that recovers before it was recorded as degraded is recorded as neither.
    until("it is recorded as degraded", || {
        first.get("/cluster/events").body.contains("cluster_degraded").then_some(())
    });
    let _second = stage.node("b", &["--min-nodes", "2"]);
    let health = until("it is healthy", || {
        Some(first.get("/cluster/health").says(200)).filter(|health| health["status"] == "healthy")
    });
    assert_eq!((&health["cluster_size"], &health["leader_id"]), (&Value::from(2), &Value::from("a")));
    assert!(health["timestamp"].as_str().unwrap().ends_with('Z'));
    let kinds = until("both are told", || {
        let events = first.get("/cluster/events").says(200);
        let kinds: Vec<String> =
            events.as_array()?.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
        kinds.contains(&String::from("cluster_recovered")).then_some(kinds)
    });
    assert_eq!(kinds.iter().filter(|kind| kind.starts_with("cluster_")).count(), 2, "{kinds:?}");
}

#[test]
fn load_balancers_find_the_leader_by_get_head_and_options() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &[]);
    for (node, path, status) in [
        (&nodes[0], "/leader", 200),
        (&nodes[0], "/follower", 503),
        (&nodes[1], "/leader", 503),
        (&nodes[1], "/follower", 200),
    ] {
        let got = node.get(path);
        match status {
            200 => assert_eq!(got.says(200)["status"], "ok"),
            _ => _ = got.refuses(503, "this node does not"),
        }
        let head = ask(node.address, "HEAD", path, &[], "");
        assert_eq!((head.status, head.body.as_str()), (status, ""), "{path}");
        assert_eq!((head.header("tenure-term"), head.header("tenure-leader")), (Some("1"), Some("a")));
        let options = ask(node.address, "OPTIONS", path, &[], "");
        assert_eq!((options.status, options.header("allow")), (status, Some("GET, HEAD, OPTIONS")), "{path}");
        // Load balancers call nodes by all sorts of names.
        assert_eq!(ask(node.address, "GET", path, &[("Host", "balancer.example")], "").status, status);
    }
    for node in &nodes {
        assert_eq!(node.get("/live").says(200)["status"], "ok");
        assert_eq!(node.get("/ready").says(200)["status"], "ok");
    }
}

#[test]
fn the_history_is_listed_from_either_end() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &[]);
    let all = nodes[0].get("/cluster/events").says(200);
    let all = all.as_array().unwrap();
    let kinds: Vec<_> = all.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["node_joined", "election_started", "leader_elected", "node_joined"]);
    assert!(
        all.iter()
            .all(|event| event["id"].is_u64() && event["time"].is_string() && event["data"].is_object())
    );
    let ask = |query: &str| nodes[1].get(&format!("/cluster/events?{query}")).says(200);
    assert_eq!(ask("limit=1").as_array().unwrap(), &all[3..]);
    let since = all[0]["id"].as_u64().unwrap();
    assert_eq!(ask(&format!("since={since}&limit=1")).as_array().unwrap(), &all[1..2]);
    assert_eq!(ask("election=coordinator").as_array().unwrap(), &all[1..3]);
    for bad in ["since=x", "limit=0", "limit=100000", "limit=-1", "sinc=1", "election="] {
        nodes[0].get(&format!("/cluster/events?{bad}")).refuses(400, "the request makes no sense");
    }
}

#[test]
fn what_is_not_there_is_refused_as_a_problem() {
    let stage = Stage::new();
    let node = stage.node("a", &[]);
    node.get("/nowhere").refuses(404, "there is nothing here");
    node.get("/cluster").refuses(404, "there is nothing here");
    ask(node.address, "DELETE", "/cluster/status", &[], "").refuses(405, "not asked for in that way");
    ask(node.address, "GET", "/cluster/resign", &[], "").refuses(405, "not asked for in that way");
    let answer = node.get("/");
    assert!(answer.status == 200 && answer.body.contains("/cluster/status"));
    assert!(answer.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert_eq!(
        (answer.header("cache-control"), answer.header("x-content-type-options")),
        (Some("no-store"), Some("nosniff"))
    );
}
