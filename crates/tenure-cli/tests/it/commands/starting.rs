//! What `run` and `node` say before anything else: which store they use, and who can take part.

use super::stage::{Running, Said, command, tenure};

/// Runs nothing of consequence on the default store of a user of its own.
fn run(change: impl FnOnce(&mut std::process::Command) -> &mut std::process::Command) -> Said {
    let state = tempfile::tempdir().unwrap();
    let mut command = command();
    command.args(["run", "--election", "nightly", "--namespace", "blue"]);
    change(command.env("XDG_STATE_HOME", state.path()).env_remove("KUBERNETES_SERVICE_HOST"));
    Said::of(&command.args(["--", "true"]).output().unwrap())
}

#[test]
fn the_first_line_names_store_and_namespace_and_who_takes_part() {
    let said = run(|command| command).done();
    let first = said.err.lines().next().unwrap();
    assert!(first.starts_with("tenure: store sqlite:/"), "{first}");
    let words = "/tenure/tenure.db, namespace `blue`; there is no --store, so only processes on this machine";
    assert!(first.contains(words), "{first}");
    assert!(!said.err.contains("warning"), "{said:?}");
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("x.db").display());
    for new in ["; the file does not exist yet and is created", ""] {
        let said = run(|command| command.args(["--store", &url])).done();
        let first = format!("tenure: store {url}, namespace `blue`{new}");
        assert_eq!(said.err.lines().next(), Some(first.as_str()));
    }
}

#[test]
fn the_first_line_shows_no_password() {
    let url = "postgres://me:s3cr3t@127.0.0.1:1/db";
    let said = run(|command| command.args(["--store", url, "--start-timeout", "100ms"]));
    assert_eq!(said.code, Some(69), "{said:?}");
    assert!(said.err.starts_with("tenure: store postgres://me:***@127.0.0.1:1/db, namespace `blue`\n"));
    assert!(!said.err.contains("s3cr3t"), "{said:?}");
}

/// Both commands that wait for a store, with these flags and one that is not there.
fn waiting(flags: &[&str]) -> [Vec<String>; 2] {
    let (run, node) = (["run", "--election", "x"], ["node", "--listen", "127.0.0.1:0"]);
    let store = ["--store", "mysql://me@127.0.0.1:1/db"];
    [[&run[..], &store, flags, &["--", "true"]].concat(), [&node[..], &store, flags].concat()]
        .map(|words| words.into_iter().map(str::to_owned).collect())
}

const WAITS: &str = "waiting for the store, trying again every second: ";

#[test]
fn waiting_for_the_store_says_why() {
    for words in waiting(&[]) {
        let waiting = Running::start(command().args(words));
        let said = std::iter::repeat_with(|| waiting.complaint()).find(|line| line.contains(WAITS)).unwrap();
        assert!(said.contains("127.0.0.1:1"), "{said}");
    }
}

#[test]
fn waiting_for_the_store_gives_up_in_the_time_that_was_given_and_repeats_nothing() {
    for words in waiting(&["--start-timeout", "3s"]) {
        let said = Said::of(&command().args(words).output().unwrap());
        let said = said.refused(69, "could not be reached within 3s (--start-timeout): ");
        let waiting: Vec<_> = said.err.lines().filter(|line| line.contains(WAITS)).collect();
        assert!(waiting.windows(2).all(|two| two[0] != two[1]), "{said:?}");
    }
}

#[test]
fn a_file_as_the_store_of_several_machines_is_warned_of() {
    let said = run(|command| command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1")).done();
    assert!(said.err.contains("warning: this is a Kubernetes pod"), "{said:?}");
    assert!(said.err.contains("every machine elects a leader of its own"), "{said:?}");
    let said = tenure(&["node", "--listen", "0.0.0.0:0"]).refused(2, "there is no TLS");
    assert!(said.err.contains("warning: --listen 0.0.0.0:0 is for other machines"), "{said:?}");
    let store = ["--store", "sqlite:/no/such/x.db"];
    let said = run(|command| command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1").args(store));
    assert!(!said.err.contains("warning"), "{said:?}");
}

#[test]
fn a_file_as_the_store_of_a_unit_for_several_hosts_is_warned_of() {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let unit = |node: &str| {
        let node = ["--node", node].map(str::to_owned);
        run(|command| command.env("INVOCATION_ID", "0123").args(node)).done().err
    };
    let words =
        "warning: this is a systemd unit (INVOCATION_ID is set) and its --node names the host, and the store";
    assert!(unit(&format!("{host}-nightly")).contains(words));
    assert!(!unit("only-one").contains("warning"));
    // At a terminal a host name says nothing.
    let said = run(|command| command.env_remove("INVOCATION_ID").args(["--node", &host])).done();
    assert!(!said.err.contains("warning"), "{said:?}");
}
