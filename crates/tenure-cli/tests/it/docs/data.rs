//! Settings, JSON and YAML in the documents and in `deploy`, read by those whom they are for.

use std::process::Command;

use serde_json::Value;
use yaml_rust2::YamlLoader;

use super::book::{Kind, documents, root};

fn blocks(kind: Kind) -> Vec<(String, String)> {
    let all = documents().into_iter().flat_map(|document| document.blocks);
    all.filter(|block| block.kind() == Some(kind)).map(|block| (block.place, block.text)).collect()
}

#[test]
fn settings_are_understood_by_the_command() {
    let directory = tempfile::tempdir().unwrap();
    for (place, text) in blocks(Kind::Toml) {
        let file = directory.path().join("tenure.toml");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        let output = command.args(["config", "show", "--config"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{place}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn json_is_json() {
    for (place, text) in blocks(Kind::Json) {
        serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
    let dashboard = std::fs::read_to_string(root().join("deploy/grafana/dashboard.json")).unwrap();
    serde_json::from_str::<Value>(&dashboard).unwrap();
}

#[test]
fn yaml_is_yaml() {
    for (place, text) in blocks(Kind::Yaml) {
        YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
}

#[test]
fn the_manifests_for_kubernetes_start_the_command_with_flags_that_it_has_and_ask_what_it_answers() {
    for manifest in ["run.yaml", "raft.yaml"] {
        let text = std::fs::read_to_string(root().join("deploy/kubernetes").join(manifest)).unwrap();
        let documents = YamlLoader::load_from_str(&text).unwrap();
        let workload = documents.last().unwrap();
        let container = &workload["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["command"][0].as_str(), Some("tenure"));
        for (probe, path) in [("livenessProbe", "/live"), ("readinessProbe", "/ready")] {
            assert_eq!(container[probe]["httpGet"]["path"].as_str(), Some(path), "{manifest}");
        }
        let args: Vec<&str> =
            container["args"].as_vec().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
        let own = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
        // Read up to the end, and then the help: so every word before it was understood.
        let (ours, program) = args.split_at(own);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        let output = command.args(ours).arg("--help").args(program).output().unwrap();
        assert!(output.status.success(), "{manifest}: {}", String::from_utf8_lossy(&output.stderr));
        let wrong =
            Command::new(env!("CARGO_BIN_EXE_tenure")).args(ours).args(["--nonsense", "--help"]).output();
        assert_eq!(wrong.unwrap().status.code(), Some(2), "a word that is none is noticed");
    }
}

#[test]
fn what_happens_when_quotes_the_command_and_names_events_and_reasons_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/what-happens-when.md")).unwrap();
    let sources = ["explain.rs", "ending.rs"].map(|file| {
        std::fs::read_to_string(root().join("crates/tenure-cli/src/commands").join(file)).unwrap()
    });
    let reasons = std::fs::read_to_string(root().join("crates/tenure-core/src/event.rs")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 15);
    for row in rows {
        for quoted in row.split('*').skip(1).step_by(2) {
            let said = sources.iter().any(|source| source.contains(quoted));
            assert!(said, "`tenure explain` does not say: {quoted}");
        }
        let cells: Vec<&str> = row.split(" | ").collect();
        let names = |cell: usize| cells[cell].split('`').skip(1).step_by(2);
        for event in names(1) {
            assert!(tenure::EventKind::from_name(event).is_some(), "no event is called {event}");
        }
        for reason in names(3).filter(|name| !name.starts_with('-')) {
            assert!(reasons.contains(&format!("\"{reason}\"")), "no reason is called {reason}");
        }
    }
}
