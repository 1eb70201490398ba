//! How the command explains itself.

use std::process::Stdio;

use super::stage::{Said, command, tenure};

const COMMANDS: [&str; 29] = [
    "run",
    "node",
    "demo",
    "leader",
    "status",
    "elections",
    "nodes",
    "events",
    "watch",
    "top",
    "resign",
    "transfer",
    "delete",
    "check",
    "explain",
    "partitions",
    "partitions create",
    "partitions list",
    "partitions show",
    "partitions resize",
    "partitions drop",
    "partitions pause",
    "partitions move",
    "partitions drain",
    "config",
    "config show",
    "completions",
    "man",
    "version",
];

#[test]
fn every_subcommand_has_an_example_in_its_help() {
    for words in COMMANDS {
        let arguments: Vec<_> = words.split(' ').chain(["--help"]).collect();
        let help = tenure(&arguments).done();
        assert!(help.out.contains("Example"), "{words}: {}", help.out);
        assert!(help.out.contains("tenure "), "{words}");
    }
    assert!(tenure(&["--help"]).done().out.contains("Exit codes: 0 done, 1 the answer is no, 2 usage"));
}

#[test]
fn an_unknown_flag_is_refused_with_the_one_that_was_meant() {
    tenure(&["status", "--jsn"]).refused(2, "a similar argument exists: '--json'");
}

#[test]
fn an_unknown_subcommand_is_refused_with_the_one_that_was_meant() {
    tenure(&["statsu"]).refused(2, "a similar subcommand exists: 'status'");
}

#[test]
fn a_missing_or_impossible_election_is_a_matter_of_usage() {
    tenure(&["leader"]).refused(2, "<ELECTION>");
    tenure(&["leader", ""]).refused(2, "the election name is empty");
    tenure(&["resign", "nightly", "--timeout", "soon"]).refused(2, "write it like 250ms, 10s or 1m30s");
}

#[test]
fn what_needs_a_terminal_says_what_to_do_without_one() {
    tenure(&["top", "nightly"]).refused(2, "tenure status nightly");
}

#[test]
fn the_version_names_the_stores_of_this_build() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        tenure(&["version"]).done().out,
        format!("tenure {version} (stores: sqlite, postgres, mysql, zk, raft, memory)\n")
    );
    let json = tenure(&["version", "--json"]).done().json();
    let stores = ["sqlite", "postgres", "mysql", "zk", "raft", "memory"];
    assert_eq!(json, serde_json::json!({"version": version, "stores": stores}));
}

#[test]
fn completions_know_the_subcommands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(tenure(&["completions", shell]).done().out.contains("transfer"), "{shell}");
    }
}

#[test]
fn completions_do_not_mind_when_nobody_reads_them() {
    for arguments in [["completions", "zsh"].as_slice(), &["man"]] {
        let mut child =
            command().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let said = Said::of(&child.wait_with_output().unwrap());
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    assert!(tenure(&["man"]).done().out.contains(".TH tenure 1"));
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    tenure(&["man", "--dir", pages.to_str().unwrap()]).done();
    assert!(pages.join("tenure.1").exists());
    for words in COMMANDS {
        let page = pages.join(format!("tenure-{}.1", words.replace(' ', "-")));
        assert!(page.exists(), "{}", page.display());
    }
    tenure(&["man", "--dir", "/dev/null/x"]).refused(1, "the pages cannot be written to `/dev/null/x`");
}

#[test]
fn help_shows_no_secret_of_the_environment() {
    let help = command().arg("--help").env("TENURE_STORE", "postgres://me:secret@h/db").output().unwrap();
    let help = Said::of(&help).done();
    assert!(help.out.contains("TENURE_STORE") && !help.out.contains("secret"), "{}", help.out);
}

#[test]
fn once_and_restart_always_contradict_each_other() {
    let run = ["run", "--election", "migration", "--once", "--restart"];
    tenure(&[&run[..], &["always", "--", "true"]].concat()).refused(2, "give --restart on-failure");
    let stage = super::stage::Stage::new();
    let on_failure = ["on-failure", "--store", &stage.url, "--", "true"];
    tenure(&[&run[..], &on_failure].concat()).done();
}

#[test]
fn a_variable_that_looks_like_a_setting_and_is_none_is_warned_of() {
    let said = Said::of(
        &command().arg("version").env("TENURE_TTTL", "1s").env("TENURE_TTL", "1s").output().unwrap(),
    );
    let warning = "tenure: warning: TENURE_TTTL in the environment is no setting of Tenure; did you mean `TENURE_TTL`?\n";
    assert_eq!(said.done().err, warning);
}

#[test]
fn a_wrong_value_in_the_environment_is_blamed_on_its_variable() {
    let said = Said::of(&command().args(["config", "show"]).env("TENURE_TTL", "soon").output().unwrap());
    said.refused(2, "invalid value 'soon' for TENURE_TTL in the environment");
    let run = ["run", "--election", "nightly", "--", "true"];
    let said = Said::of(&command().args(run).env("TENURE_RESTART", "maybe").output().unwrap());
    said.refused(2, "[possible values: never, on-failure, always]");
    let flag = command().args(["config", "show", "--ttl", "soon"]).env("TENURE_TTL", "soon").output();
    Said::of(&flag.unwrap()).refused(2, "invalid value 'soon' for '--ttl <TIME>'");
}

#[test]
fn a_program_without_two_dashes_before_it_is_answered_with_where_they_belong() {
    let run = ["run", "--election", "nightly", "./report", "--all"];
    tenure(&run).refused(2, "the program and its arguments follow `--`: tenure run … -- ./report …");
}

#[test]
fn a_setting_out_of_range_is_refused_before_a_store_is_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.db");
    let url = format!("sqlite:{}", path.display());
    let words = ["run", "--store", &url, "--election", "nightly", "--ttl", "1ms", "--", "true"];
    Said::of(&command().args(words).output().unwrap()).refused(2, "must be at least 50ms");
    assert!(!path.exists());
}

#[test]
fn a_setting_out_of_range_is_blamed_on_where_it_was_written() {
    let stage = super::stage::Stage::new();
    let run = |change: &dyn Fn(&mut std::process::Command)| {
        let mut command = stage.command(&["run", "--election", "nightly"]);
        change(&mut command);
        Said::of(&command.args(["--", "true"]).output().unwrap())
    };
    run(&|command| {
        command.env("TENURE_TTL", "1ms");
    })
    .refused(2, "`TENURE_TTL` in the environment is 1ms, but must be at least 50ms; raise it");
    let file = stage.directory.path().join("tenure.toml");
    std::fs::write(&file, "renew-every = \"9s\"\n").unwrap();
    let words = format!("`renew-every` in {} is 9s, but must be at most 6s, so that", file.display());
    run(&|command| {
        command.arg("--config").arg(&file);
    })
    .refused(2, &words);
    run(&|command| {
        command.args(["--ttl", "48h"]).env("TENURE_TTL", "1ms");
    })
    .refused(2, "`--ttl` is 48h, but must be at most 24h; lower it");
}

#[test]
fn the_help_of_run_groups_its_options() {
    let help = tenure(&["run", "--help"]).done().out;
    for heading in ["Options:", "Node:", "Health check:", "HTTP API:", "Store and output:"] {
        assert!(help.lines().any(|line| line == heading), "{heading} is not in {help}");
    }
}

#[test]
fn the_log_has_no_colours_in_a_file() {
    let stage = super::stage::Stage::new();
    let said = stage.tenure(&["run", "--election", "nightly", "-v", "--", "true"]).done();
    assert!(said.err.contains("node_joined") && !said.err.contains('\u{1b}'), "{said:?}");
}

#[test]
fn localhost_is_an_address_and_a_task_list_has_a_domain_by_default() {
    tenure(&["config", "show", "--listen", "localhost:8001"]).done();
    tenure(&["config", "show", "--listen", "somewhere"]).refused(2, "write it like 127.0.0.1:8001");
    let stage = super::stage::Stage::new();
    stage.tenure(&["partitions", "create", "invoices", "--count", "4"]).done();
    assert!(stage.tenure(&["partitions", "list"]).done().out.contains("default/invoices"));
}
