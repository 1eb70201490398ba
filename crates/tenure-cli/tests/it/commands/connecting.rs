//! Finding the store, or saying why not.

use super::stage::{Said, Stage, command, tenure};

#[test]
fn a_slip_in_the_store_url_is_a_matter_of_usage_and_a_right_one_is_shown() {
    for (url, words) in [
        ("sqlit:./x.db", "unsupported store scheme `sqlit:`"),
        ("x.db", "it has no scheme"),
        ("sqlite:", "the path of the file is missing"),
        ("sqlite:./x.db?wal=off", "unknown parameter `wal`"),
        ("sqlite:./x.db?history=no", "`history=no` is wrong"),
    ] {
        tenure(&["nodes", "--store", url]).refused(2, words);
    }
    tenure(&["nodes", "--store", "sqlit:x"]).refused(2, "a right URL is `sqlite:./tenure.db`");
}

#[test]
fn schemes_of_other_tools_are_taken_and_errors_quote_what_was_written() {
    for (url, words) in [
        ("postgresql://me:s3cr3t@h1", "store URL `postgresql://me:***@h1`: "),
        ("mariadb://me@h1", "store URL `mariadb://me@h1`: "),
        ("zookeeper:h1", "store URL `zookeeper:h1`: "),
        ("postgress://me@h1/db", "a right URL is `postgres://user@host/database`"),
        ("maria://me@h1/db", "a right URL is `mysql://user@host/database`"),
    ] {
        let said = tenure(&["nodes", "--store", url]).refused(2, words);
        assert!(!said.err.contains("s3cr3t"), "{said:?}");
    }
}

#[test]
fn an_error_quotes_the_url_as_it_was_typed() {
    for (url, words) in [
        ("/var/lib/x.db", "tenure: `/var/lib/x.db` is no store URL: it has no scheme"),
        ("mariadb://me@h1", "the store URL is wrong after `mariadb:`: the database is missing"),
        ("mariadb://me@h1", "a right one is `mariadb://user@host/database`"),
        ("zookeeper:h1", "the store URL is wrong after `zookeeper:`"),
    ] {
        let said = tenure(&["nodes", "--store", url]).refused(2, words);
        assert!(!said.err.contains("namespace="), "{said:?}");
    }
    let said =
        tenure(&["nodes", "--store", "postgress://me@h1/db"]).refused(2, "this build supports `sqlite:`");
    assert!(!said.err.contains("memory:"), "the command has no use for it: {said:?}");
}

#[test]
fn no_part_of_a_password_is_shown_however_it_is_written() {
    for password in ["t0p/h1dden", "t0p?h1dden", "t0p@h1dden", "t0p#h1dden", "t0p/x?y#z@h1dden"] {
        for scheme in ["postgres", "mysql", "zk", "nonsense"] {
            let url = format!("{scheme}://me:{password}@127.0.0.1:1/db");
            let run = ["run", "--election", "x", "--start-timeout", "100ms", "--store", &url, "--", "true"];
            for words in [&run[..], &["nodes", "--store", &url], &["config", "show", "--store", &url]] {
                let said = tenure(words);
                let all = format!("{}{}", said.out, said.err);
                assert!(!all.contains("t0p") && !all.contains("h1dden"), "{url}: {said:?}");
                assert!(all.contains("127.0.0.1:1"), "what is no secret is told: {url}: {said:?}");
            }
        }
    }
    for url in ["//me:t0p@h/db", "me:t0p@h/db", "postgres://me:t0p/db", "mysql://me:t0p/db?password=t0p"] {
        let said = tenure(&["nodes", "--store", url]);
        assert!(said.code == Some(2) && !said.err.contains("t0p"), "{url}: {said:?}");
    }
    let words =
        "in a password, write `/` as %2F, `?` as %3F and `@` as %40, or give it in TENURE_STORE_PASSWORD";
    tenure(&["nodes", "--store", "postgres://me:a/b@h/db"]).refused(2, words);
}

#[test]
fn a_store_that_cannot_be_used_has_a_code_of_its_own() {
    tenure(&["nodes", "--store", "sqlite:/no/such/x.db"]).refused(69, "/no/such/x.db` does not exist");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.db");
    std::fs::write(&path, "this is no database, but a text of some length ".repeat(20)).unwrap();
    let url = format!("sqlite:{}", path.display());
    for arguments in [["nodes"].as_slice(), &["check"], &["leader", "nightly"], &["events", "--follow"]] {
        let said = command().args(arguments).args(["--store", &url]).output().unwrap();
        Said::of(&said).refused(69, "it is not a SQLite database");
    }
}

#[test]
fn whoever_reads_json_gets_errors_in_json() {
    let said = tenure(&["nodes", "--json", "--store", "sqlite:/no/such/x.db"]).refused(69, "");
    let error: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(error["exit_code"], 69);
    assert!(error["error"].as_str().unwrap().contains("/no/such"));
    assert_eq!(said.out, "");
}

#[test]
fn the_default_store_lies_in_the_state_directory() {
    let state = tempfile::tempdir().unwrap();
    let list = ["partitions", "create", "billing/invoices", "--count", "4"];
    let said = command().args(list).env("XDG_STATE_HOME", state.path()).output().unwrap();
    Said::of(&said).done();
    assert!(state.path().join("tenure/tenure.db").exists());
}

#[test]
fn namespaces_do_not_see_each_other() {
    let stage = Stage::new();
    let _alpha = stage.leads("alpha");
    assert_eq!(stage.tenure(&["leader", "nightly"]).done().out, "alpha\n");
    stage.tenure(&["leader", "nightly", "--namespace", "blue"]).refused(1, "no election `nightly`");
    assert_eq!(stage.tenure(&["nodes", "--json", "--namespace", "blue"]).done().lines().len(), 0);
}
