//! Commands that only look: they create, change and register nothing.

use std::collections::BTreeMap;
use std::path::Path;

use super::stage::{Said, Stage, command, tenure};

/// Everything that asks a store, and is not there to set one up.
const LOOKS: [&[&str]; 15] = [
    &["leader", "nightly"],
    &["status"],
    &["status", "nightly"],
    &["elections"],
    &["nodes"],
    &["events"],
    &["events", "--follow"],
    &["watch", "nightly"],
    &["explain", "nightly"],
    &["resign", "nightly"],
    &["transfer", "nightly", "--to", "alpha"],
    &["delete", "nightly"],
    &["partitions", "list"],
    &["partitions", "show", "orders/bills"],
    &["config", "nginx"],
];

/// The files of a directory, and what is in them.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn a_slip_in_the_path_of_a_store_creates_no_database() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("typo.db").display());
    for look in LOOKS {
        let said = Said::of(&command().args(look).args(["--store", &url]).output().unwrap());
        said.refused(69, "typo.db` does not exist; check the store URL, or start `tenure run`");
    }
    let said = tenure(&["check", "--store", &url]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.out.contains("does not exist") && said.out.contains("--write"), "{said:?}");
    assert!(contents(directory.path()).is_empty());
}

#[test]
fn the_file_of_another_application_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("app.db");
    let url = format!("sqlite:{}", path.display());
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE orders (id)").unwrap();
    let before = contents(directory.path());
    for look in LOOKS.into_iter().chain([&["check"][..]]) {
        let said = Said::of(&command().args(look).args(["--store", &url]).output().unwrap());
        let told = format!("{}{}", said.out, said.err);
        assert!(told.contains("app.db` has none of Tenure's tables"), "{look:?}: {said:?}");
        assert_eq!(contents(directory.path()), before, "{look:?}");
    }
}

#[test]
fn tables_of_an_older_version_are_not_upgraded_by_a_look() {
    let stage = Stage::new();
    let path = stage.directory.path().join("tenure.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch("UPDATE tenure_meta SET schema = 1").unwrap();
    stage.tenure(&["status"]).refused(69, "have version 1, and this build reads version");
    let version: i64 = file.query_row("SELECT schema FROM tenure_meta", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
}

#[test]
fn the_default_store_is_not_created_by_a_look() {
    let state = tempfile::tempdir().unwrap();
    let said = command().arg("status").env("XDG_STATE_HOME", state.path()).output().unwrap();
    Said::of(&said).refused(69, "tenure.db` does not exist");
    assert!(contents(state.path()).is_empty());
}

#[test]
fn a_check_that_may_write_sets_the_store_up_and_leaves_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("new.db").display());
    for _ in 0..2 {
        let said = tenure(&["check", "--write", "--store", &url]);
        assert!(said.out.contains("a renewal takes "), "{said:?}");
    }
    for listing in ["nodes", "elections", "events"] {
        assert_eq!(tenure(&[listing, "--json", "--store", &url]).done().out, "", "{listing}");
    }
    let file = rusqlite::Connection::open(directory.path().join("new.db")).unwrap();
    let count = |table: &str| -> i64 {
        file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    // In the namespace of the measurement, one event at most stays for good.
    assert_eq!((count("tenure_sessions"), count("tenure_events") <= 1), (0, true));
}

#[cfg(feature = "server-tests")]
mod servers {
    use tenure_testkit::server::{MariaDb, Postgres, ZooKeeper};

    use super::super::stage::until;
    use super::{Said, command, tenure};

    /// Nothing is set up by a look or a check, and everything by a check that may write.
    fn set_up_only_on_demand(url: &str, words: &str) {
        // On a busy machine a server may not answer in the time that a look gives it.
        let ask = |arguments: &[&str]| {
            until("the server answers", || {
                let said = Said::of(&command().args(arguments).args(["--store", url]).output().unwrap());
                let late = ["cannot reach", "has not answered within"];
                let late = late.iter().any(|words| said.out.contains(words) || said.err.contains(words));
                (!late).then_some(said)
            })
        };
        for look in super::LOOKS {
            ask(look).refused(69, words);
        }
        for _ in 0..2 {
            let said = ask(&["check"]);
            assert!(said.code == Some(1) && said.out.contains(words), "{said:?}");
        }
        let said = ask(&["check", "--write"]);
        assert!(said.out.contains("a renewal takes "), "{said:?}");
        let said = ask(&["check"]);
        assert!(said.out.contains("a renewal takes "), "{said:?}");
        for listing in ["nodes", "elections", "events"] {
            assert_eq!(ask(&[listing, "--json"]).done().out, "", "{listing}");
        }
        ask(&["leader", "nightly"]).refused(1, "nightly");
    }

    #[test]
    fn looks_make_no_tables_in_postgresql() {
        let server = Postgres::start();
        set_up_only_on_demand(&server.url(), "has no schema \"tenure\" with Tenure's tables");
        tenure(&["nodes", "--store", &format!("{}?schema=other", server.url())])
            .refused(69, "has no schema \"other\"");
    }

    #[test]
    fn looks_make_no_tables_in_mysql() {
        set_up_only_on_demand(&MariaDb::start().url(), "has none of Tenure's tables");
    }

    #[test]
    fn looks_make_no_znodes_in_zookeeper() {
        set_up_only_on_demand(&ZooKeeper::start().url(), "there is no Tenure store below");
    }
}
