//! The flags of `tenure node` for a program beside it.

use std::sync::Arc;

use super::clients::{ask, eventually};
use super::cluster::{Cluster, tenure};
use super::ledger::{Ledger, program};

#[tokio::test(flavor = "multi_thread")]
async fn paths_may_be_for_the_leader_or_for_all_whatever_the_method() {
    let ledger = Arc::new(Ledger::default());
    let upstreams = [program(1, Arc::clone(&ledger)).await, program(2, Arc::clone(&ledger)).await];
    let rules = ["--leader-path", "/orders/fresh", "--any-path", "/search"];
    let cluster = Cluster::start_with(&upstreams, "503", &rules).await;
    let (leader, _) = cluster.leader().await;
    let (leading, following) = cluster.split(&leader);
    eventually(&leading, "POST", "1", "/orders").await;
    for (method, path, at_follower) in [
        ("GET", "/orders", 200),
        ("POST", "/orders", 503),
        ("GET", "/orders/fresh/7", 503),
        ("POST", "/search", 404), // the program's own answer: it was let through
        ("POST", "/search/../orders", 503),
    ] {
        let answer = ask(&following, method, "2", path).await.unwrap();
        assert_eq!(answer.status, at_follower, "{method} {path}: {answer:?}");
    }
    assert_eq!(ask(&leading, "GET", "", "/orders/fresh/7").await.unwrap().status, 404);
    assert!(ledger.violations().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_answers_for_itself_and_the_program_for_the_rest() {
    let ledger = Arc::new(Ledger::default());
    let cluster = Cluster::start(&[program(1, Arc::clone(&ledger)).await], "307").await;
    let at = cluster.addresses().remove(0);
    cluster.leader().await;
    for (path, part) in [("/cluster/status", "\"node_id\":\"node-1\""), ("/live", "200 OK"), ("/", "404")] {
        let answer = ask(&at, "GET", "", path).await.unwrap();
        assert!(answer.whole.contains(part), "{path}: {answer:?}");
    }
}

#[test]
fn an_upstream_that_cannot_be_is_refused_before_anything_starts() {
    for (upstream, says) in
        [("9000", "no URL"), ("ftp://127.0.0.1", "scheme"), ("http://me@x.example", "user")]
    {
        let output = tenure(&[
            "node",
            "--store",
            "sqlite:/no/such/x.db",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            upstream,
        ]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(says), "{upstream}: {said}");
    }
}
