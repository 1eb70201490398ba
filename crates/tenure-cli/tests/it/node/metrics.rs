//! Metrics as Prometheus reads them.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use super::client::ask;
use super::stage::{Stage, until};

/// Every name of the contract.
const NAMES: [&str; 16] = [
    "tenure_is_leader",
    "tenure_term",
    "tenure_leader_changes_total",
    "tenure_leadership_seconds",
    "tenure_elections_total",
    "tenure_renewals_total",
    "tenure_renewal_seconds",
    "tenure_lease_remaining_seconds",
    "tenure_failover_seconds",
    "tenure_nodes",
    "tenure_node_healthy",
    "tenure_heartbeats_total",
    "tenure_store_request_seconds",
    "tenure_partitions",
    "tenure_partition_moves_total",
    "tenure_rebalance_seconds",
];

fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

#[test]
fn every_metric_of_the_contract_is_there_and_promtool_reads_them() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["a", "b"], &["--ttl", "1h", "--renew-every", "200ms"]);
    let read = |index: usize, series: &str| value(&nodes[index].get("/metrics").body, series);
    assert_eq!(nodes[1].order("/cluster/resign", "").status, 202);
    nodes[1].until_ok("/leader");
    until("renewals are counted", || {
        read(1, "tenure_renewals_total{outcome=\"ok\"}").filter(|&count| count > 0.0)
    });
    until("the gap is measured", || read(0, "tenure_failover_seconds_count").filter(|&count| count == 1.0));
    let answer = nodes[1].get("/metrics");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = &answer.body;
    let samples: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    for name in NAMES {
        let there = samples.contains(name) || samples.contains(format!("{name}_count").as_str());
        assert!(there, "{name} is missing: {text}");
    }
    let here = |series: &str| value(text, series).unwrap_or_else(|| panic!("{series} is missing: {text}"));
    assert_eq!(here("tenure_is_leader{election=\"coordinator\"}"), 1.0);
    assert_eq!(here("tenure_term{election=\"coordinator\"}"), 2.0);
    assert_eq!(here("tenure_leader_changes_total{election=\"coordinator\"}"), 2.0);
    assert_eq!(here("tenure_elections_total{outcome=\"won\"}"), 1.0);
    assert_eq!(here("tenure_elections_total{outcome=\"lost\"}"), 1.0);
    assert_eq!(here("tenure_nodes{state=\"live\"}"), 2.0);
    let left = here("tenure_lease_remaining_seconds{election=\"coordinator\"}");
    assert!(left > 0.0 && left <= 3600.0, "{left}");
    assert_eq!(here("tenure_store_request_seconds_count{operation=\"open\"}"), 1.0);
    assert_eq!(read(0, "tenure_is_leader{election=\"coordinator\"}"), Some(0.0));
    assert_eq!(read(0, "tenure_leadership_seconds_count"), Some(1.0));
    promtool(&["check", "metrics"], text);
    let accept = ("Accept", "application/openmetrics-text; version=1.0.0,text/plain;q=0.5");
    let open = ask(nodes[1].address, "GET", "/metrics", &[accept], "");
    assert!(open.header("content-type").unwrap().starts_with("application/openmetrics-text; version=1.0.0"));
    assert!(open.body.ends_with("# EOF\n") && open.body.contains("# TYPE tenure_renewals counter"));
}

#[test]
fn requests_to_the_store_are_named_as_the_documentation_names_them() {
    let stage = Stage::new();
    let node = stage.node("a", &["--task-list", "jobs/parts=2"]);
    let operations = || -> BTreeSet<String> {
        let text = node.get("/metrics").body;
        let counted = text
            .lines()
            .filter_map(|line| line.strip_prefix("tenure_store_request_seconds_count{operation=\""));
        counted.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    until("it looks after its partitions", || {
        let seen = operations();
        (seen.contains("read_partitions") && seen.contains("read_workers")).then_some(())
    });
    let documents = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/node.md");
    let documents = std::fs::read_to_string(documents).unwrap();
    let told = documents.lines().find(|line| line.contains("`tenure_store_request_seconds`")).unwrap();
    for operation in operations() {
        assert!(told.contains(&format!("`{operation}`")), "`{operation}` is not in: {told}");
    }
}

#[test]
fn the_alert_rules_are_sound_and_speak_of_metrics_that_there_are() {
    let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let rules = deploy.join("prometheus/alerts.yml");
    promtool(&["check", "rules", rules.to_str().unwrap()], "");
    let dashboard = std::fs::read_to_string(deploy.join("grafana/dashboard.json")).unwrap();
    serde_json::from_str::<serde_json::Value>(&dashboard).expect("the dashboard is JSON");
    for text in [std::fs::read_to_string(rules).unwrap(), dashboard] {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(|word| word.starts_with("tenure_")) {
            let base = name.trim_end_matches("_bucket").trim_end_matches("_count").trim_end_matches("_sum");
            assert!(NAMES.contains(&base), "`{name}` is no metric of ours");
        }
    }
}

/// Installed by `cargo xtask setup`.
fn promtool(arguments: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool is installed: `cargo xtask setup` does it");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{input}");
}
