//! The examples in other languages, three copies of each.

use std::path::Path;
use std::process::Command;

use super::clients::eventually;
use super::cluster::{Cluster, Process, free_place};

async fn serve_orders_everywhere_and_take_them_at_the_leader(language: &str, script: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(script);
    let directory = tempfile::tempdir().unwrap();
    let (mut programs, mut upstreams) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let at = free_place().await;
        let port = at.rsplit(':').next().unwrap();
        let mut command = Command::new(language);
        command.arg(&script).arg(port).arg(directory.path().join("orders.txt"));
        programs.push(Process::spawn(&mut command, &directory.path().join("log")));
        upstreams.push(format!("http://{at}"));
    }
    // Long enough for a busy machine: an order whose leader is lost on the way may have been taken or not.
    let mut cluster = Cluster::start_with(&upstreams, "forward", &["--ttl", "5s"]).await;
    let mut expected = String::new();
    for round in 0..2 {
        for at in cluster.addresses() {
            let what = format!("tea for {at}");
            let term = eventually(&at, "POST", &what, "").await.0;
            expected.push_str(&format!("{term} {what}\n"));
        }
        for at in cluster.addresses() {
            let (_, orders) = eventually(&at, "GET", "", "").await; // its program may still be starting
            assert!(orders.whole.ends_with(&expected), "{orders:?} and not {expected:?}");
        }
        if round == 0 {
            cluster.until_standing(1).await;
            let (leader, _) = cluster.leader().await;
            cluster.crash(&leader).await; // the others go on
        }
    }
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(log.is_empty(), "the programs complain: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_in_python() {
    serve_orders_everywhere_and_take_them_at_the_leader("python3", "python/service.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_in_node_js() {
    serve_orders_everywhere_and_take_them_at_the_leader("node", "node/service.js").await;
}
