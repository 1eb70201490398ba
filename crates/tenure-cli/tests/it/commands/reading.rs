//! What is true now: leader, status, elections, nodes.

use std::time::Duration;

use tenure::Node;

use super::stage::{Stage, fields, until};

const LIFE: Duration = Duration::from_secs(60);

#[test]
fn the_leader_is_one_word_and_nobody_is_an_answer_too() {
    let stage = Stage::new();
    let said = stage.tenure(&["leader", "nightly"]).refused(1, "no election `nightly`");
    assert_eq!(said.out, "");
    let _alpha = stage.leads("alpha");
    let said = stage.tenure(&["leader", "nightly"]).done();
    assert_eq!((said.out.as_str(), said.err.as_str()), ("alpha\n", ""));
}

#[test]
fn the_leader_in_json_has_the_names_of_the_contract() {
    let stage = Stage::new();
    let unknown = stage.tenure(&["leader", "nightly", "--json"]).refused(1, "no election `nightly`");
    assert_eq!(unknown.out, "", "this is no election without a leader");
    stage.leads("beta").leaves();
    let nobody = stage.tenure(&["leader", "nightly", "--json"]).refused(1, "");
    assert!(nobody.json()["leader_id"].is_null() && nobody.err.is_empty(), "{nobody:?}");
    let _alpha = stage.stands_as(Node::builder("alpha").ttl(LIFE).address("http://127.0.0.1:1/"));
    stage.until_leads("alpha");
    let leader = stage.tenure(&["leader", "nightly", "--json"]).done().json();
    assert_eq!(leader["leader_id"], "alpha");
    assert_eq!(leader["api_url"], "http://127.0.0.1:1/");
    let names = ["age_ms", "api_url", "election", "expires_in_ms", "hostname", "leader_id", "term"];
    assert_eq!(fields(&leader), names);
}

#[test]
fn the_status_tells_who_leads_who_comes_next_and_how_soon() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    let alone = stage.tenure(&["status"]).done();
    assert!(alone.out.ends_with("if alpha dies now, nobody takes over: no candidate stands\n"), "{alone:?}");
    let _beta = stage.stands("beta");
    stage.until_standing(&["beta"]);
    let _gamma = stage.stands_as(Node::builder("gamma").ttl(LIFE).priority(5));
    stage.until_standing(&["gamma", "beta"]);
    let said = stage.tenure(&["status", "nightly"]).done();
    let lines: Vec<_> = said.out.lines().collect();
    let (_, term) = stage.leader().unwrap();
    assert!(lines[0].starts_with(&format!("nightly: alpha leads under term {term} (host ")), "{said:?}");
    assert!(lines[0].contains(", renewed ") && lines[0].ends_with(" left)"), "{said:?}");
    assert_eq!(lines[1..3], ["  1. gamma  priority 5", "  2. beta  priority 0"]);
    assert!(lines[3].starts_with("  if alpha dies now, gamma leads within "), "{said:?}");
    assert!(
        lines[3].ends_with("; if its machine dies, nobody takes over: every candidate is on it"),
        "{said:?}"
    );
    assert!(!said.out.contains('\u{1b}'));
}

#[test]
fn the_status_in_json_is_one_object_per_election() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    let _beta = stage.stands("beta");
    stage.until_standing(&["beta"]);
    let lines = stage.tenure(&["status", "--json"]).done().lines();
    let [status] = lines.as_slice() else { panic!("{lines:?}") };
    let names = [
        "age_ms",
        "api_url",
        "candidates",
        "election",
        "expires_in_ms",
        "forecast",
        "hostname",
        "leader_id",
        "lease",
        "state",
        "term",
        "unhealthy",
    ];
    assert_eq!(fields(status), names);
    assert_eq!(status["state"], "led");
    let lease = &status["lease"];
    // As in `GET /cluster/status`.
    let names = ["acquired_at", "api_url", "expires_at", "hostname", "leader_id", "renewed_at", "term"];
    assert_eq!(fields(lease), names);
    for name in ["leader_id", "term", "hostname", "api_url"] {
        assert_eq!(lease[name], status[name], "{name}");
    }
    let moment = |name: &str| humantime::parse_rfc3339(lease[name].as_str().unwrap()).unwrap();
    assert_eq!(moment("expires_at").duration_since(moment("renewed_at")).unwrap(), LIFE);
    let mut elected = stage.tenure(&["events", "--json"]).done().lines();
    elected.retain(|event| event["event"] == "leader_elected" && event["term"] == status["term"]);
    assert_eq!(lease["acquired_at"], elected[0]["time"]);
    assert_eq!(status["candidates"], serde_json::json!([{"node_id": "beta", "priority": 0}]));
    assert_eq!(status["forecast"]["successor"], "beta");
    // A life of a minute, and what two questions take.
    assert_eq!(fields(&status["forecast"]), ["machine_ms", "process_ms", "successor"]);
    let within = status["forecast"]["process_ms"].as_u64().unwrap();
    assert!(within >= status["expires_in_ms"].as_u64().unwrap(), "{status}");
    // Both are on this machine.
    assert_eq!(status["forecast"]["machine_ms"], serde_json::Value::Null);
}

#[test]
fn the_status_says_that_a_candidate_with_a_takeover_delay_is_not_listed() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    let _beta = stage.stands_as(Node::builder("beta").ttl(LIFE).takeover_delay(LIFE));
    let said = stage.tenure(&["status"]).done();
    assert!(
        said.out.contains("(a candidate with --takeover-delay is listed once its delay is over)"),
        "{said:?}"
    );
}

#[test]
fn the_status_of_an_election_without_a_leader_says_why() {
    let stage = Stage::new();
    let (alpha, beta) = (stage.leads("alpha"), stage.stands("beta"));
    stage.until_standing(&["beta"]);
    alpha.leaves();
    stage.until_leads("beta");
    beta.leaves();
    until("nobody should lead", || stage.leader().is_none());
    let free = stage.tenure(&["status", "nightly"]).done();
    assert!(free.out.contains("nightly: nobody leads; the last term was "), "{free:?}");
    let json = stage.tenure(&["status", "nightly", "--json"]).done().json();
    assert_eq!((json["state"].as_str(), json["forecast"].is_null()), (Some("free"), true));
    assert!(json["lease"].is_null());
    stage.tenure(&["delete", "nightly"]).done();
    let deleted = stage.tenure(&["status", "nightly"]).done();
    assert!(deleted.out.contains("nobody leads; it was ended under term "), "{deleted:?}");
    assert_eq!(stage.tenure(&["status", "nightly", "--json"]).done().json()["state"], "deleted");
}

#[test]
fn an_election_that_nobody_stood_for_is_refused_with_the_one_that_was_meant() {
    let stage = Stage::new();
    stage.tenure(&["status", "nightly"]).refused(1, "nobody has stood for any");
    let _alpha = stage.leads("alpha");
    let words = "no election `nihgtly`; did you mean `nightly`? known are nightly";
    for command in ["status", "explain", "resign", "delete"] {
        stage.tenure(&[command, "nihgtly"]).refused(1, words);
    }
    stage.tenure(&["events", "--election", "nihgtly"]).refused(1, words);
}

#[test]
fn tables_are_aligned_and_without_colour_when_no_terminal_reads_them() {
    let stage = Stage::new();
    let _alpha = stage.leads("a-node-with-a-rather-long-name");
    let _beta = stage.stands("b");
    stage.until_standing(&["b"]);
    for command in ["elections", "nodes"] {
        let said = stage.tenure(&[command]).done();
        assert!(!said.out.contains('\u{1b}'), "{said:?}");
        let mut lines = said.out.lines();
        let head = lines.next().unwrap();
        let column = head.find(if command == "nodes" { "STATE" } else { "TERM" }).unwrap();
        for line in lines {
            assert_eq!(&line[column - 2..column], "  ", "{}", said.out);
            assert_ne!(&line[column..=column], " ", "{}", said.out);
        }
    }
}

#[test]
fn elections_and_nodes_in_json_have_the_names_of_the_contract() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    let elections = stage.tenure(&["elections", "--json"]).done().lines();
    let names = ["age_ms", "api_url", "election", "expires_in_ms", "hostname", "leader_id", "state", "term"];
    assert_eq!(fields(&elections[0]), names);
    let beta = stage.stands("beta");
    stage.until_standing(&["beta"]);
    beta.leaves();
    let nodes = stage.tenure(&["nodes", "--json"]).done().lines();
    let names = [
        "api_url",
        "hostname",
        "joined_at",
        "labels",
        "leads",
        "node_id",
        "pid",
        "problem",
        "renewed_at",
        "session",
        "state",
        "unhealthy_since",
        "version",
    ];
    assert_eq!(fields(&nodes[0]), names);
    let told: Vec<_> = nodes.iter().map(|node| (&node["node_id"], &node["state"], &node["leads"])).collect();
    assert_eq!(
        format!("{told:?}"),
        r#"[(String("alpha"), String("live"), Number(1)), (String("beta"), String("left"), Number(0))]"#
    );
}

#[test]
fn a_leader_that_was_silent_for_its_whole_life_leads_no_longer() {
    let stage = Stage::new();
    let _ghost = stage.ghost("alpha", Duration::from_millis(100));
    until("a dead leader should lapse", || stage.tenure(&["leader", "nightly"]).code == Some(1));
    assert_eq!(stage.tenure(&["elections", "--json"]).done().json()["state"], "free");
    let node = stage.tenure(&["nodes", "--json"]).done().json();
    assert_eq!((node["state"].as_str(), node["leads"].as_u64()), (Some("live"), Some(0)));
}
