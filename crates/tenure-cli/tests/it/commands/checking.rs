//! Whether a store can be relied on, and how fast it is: check and bench.

use super::stage::{Stage, fields, tenure, until};

#[test]
fn a_sound_store_is_found_sound_and_the_ttl_that_it_supports_is_told() {
    let stage = Stage::new();
    let said = stage.tenure(&["check"]);
    for words in ["journal      ok     wal", "synchronous  ok     full", "news         ok     inotify"] {
        assert!(said.out.contains(words), "{said:?}");
    }
    assert!(said.out.contains(" is advised; "), "{said:?}");
    assert!(said.out.contains("a renewal takes "), "{said:?}");
    assert!(!said.out.contains('\u{1b}'));
}

#[test]
fn a_check_in_json_has_the_names_of_the_contract() {
    let stage = Stage::new();
    let said = stage.tenure(&["check", "--json"]);
    let report = said.json();
    assert_eq!(
        fields(&report),
        ["advised_ttl_ms", "findings", "fine", "read_ms", "renew_ms", "supported_ttl_ms"]
    );
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| fields(finding) == ["advice", "fine", "name", "value"]));
    assert_eq!(fields(&report["renew_ms"]), ["p50", "p99"]);
    let supported = report["supported_ttl_ms"].as_u64().unwrap();
    assert!(supported >= 50);
    assert_eq!(report["advised_ttl_ms"], supported.max(10_000));
    // A busy machine may be too slow to be fine; the code says the same as the report.
    assert_eq!(said.code, Some(i32::from(report["fine"] != true)));
    let named = |name: &str| findings.iter().find(|finding| finding["name"] == name).unwrap();
    for name in ["file", "journal", "synchronous", "schema", "file system", "boot clock"] {
        assert_eq!(named(name)["fine"], true, "{name}");
    }
    assert!(named("file")["value"].as_str().unwrap().contains("tenure.db"));
}

#[test]
fn a_check_leaves_nothing_behind_in_nodes_or_history() {
    let stage = Stage::new();
    stage.tenure(&["check"]);
    for listing in ["nodes", "elections", "events"] {
        assert_eq!(stage.tenure(&[listing, "--json"]).done().out, "", "{listing}");
    }
}

#[test]
fn what_is_wrong_is_a_warning_with_advice_and_the_answer_is_no() {
    let stage = Stage::new();
    let path = stage.directory.path().join("tenure.db");
    // Renewals fail, as they do for whoever may only read.
    let store = rusqlite::Connection::open(path).unwrap();
    store
        .execute_batch(
            "CREATE TRIGGER refuse BEFORE UPDATE OF sequence ON tenure_sessions
             BEGIN SELECT RAISE(ABORT, 'refused by a test'); END",
        )
        .unwrap();
    let said = stage.tenure(&["check"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let row = said.out.lines().find(|line| line.starts_with("session")).unwrap();
    assert!(row.contains("WARN   cannot be kept"), "{said:?}");
}

#[test]
fn a_bench_tells_what_a_hand_over_and_a_crash_cost_and_touches_nothing_else() {
    let bench =
        ["bench", "--rounds", "3", "--crashes", "1", "--ttl", "6s", "--json", "--namespace", "production"];
    // A machine that is too busy for the ttl is told so, and measures again.
    let (stage, said) = until("it is measured", || {
        let stage = Stage::new();
        let run = ["run", "--election", "nightly", "--node", "alpha", "--namespace", "production"];
        tenure(&[&run[..], &["--store", &stage.url, "--", "true"]].concat()).done();
        let said = stage.tenure(&bench);
        (!said.err.contains("give a longer --ttl")).then_some((stage, said))
    });
    let said = said.done();
    let report = said.json();
    let names = ["failover_ms", "handover_ms", "idle", "read_ms", "renew_ms", "ttl_ms"];
    assert_eq!(fields(&report), names, "{said:?}");
    assert_eq!(fields(&report["idle"]), ["cpu_percent", "other_requests", "renewals"]);
    // A crash is only noticed by silence: a ttl from the last renewal. A lease is over when 15 % of the ttl are left, so
    // who still leads, however late its last renewal was, is waited for that long at least.
    let took = |figure: &str| report[figure]["p50"].as_f64().unwrap();
    assert!(took("failover_ms") >= 900.0 && took("handover_ms") > 0.0, "{report}");
    for listing in ["nodes", "elections", "events"] {
        assert_eq!(stage.tenure(&[listing, "--json"]).done().out, "", "{listing}");
    }
    // A node that has left is still listed where people look for it.
    let nodes = stage.tenure(&["nodes", "--json", "--namespace", "production"]).done().out;
    assert!(nodes.lines().count() == 1 && nodes.contains("alpha"), "{nodes}");
}

#[test]
fn a_bench_creates_no_store_unless_it_may_write() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("typo.db").display());
    tenure(&["bench", "--store", &url]).refused(69, "with --write, `tenure bench` sets it up");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_store_inside_one_process_is_refused() {
    let run = ["run", "--election", "nightly", "--store", "memory:", "--", "true"];
    for arguments in [
        &run[..],
        &["node", "--store", "Memory:x"],
        &["check", "--store", "memory:"],
        &["bench", "--store", "memory:"],
    ] {
        tenure(arguments).refused(2, "a `memory:` store is inside one process");
    }
}
