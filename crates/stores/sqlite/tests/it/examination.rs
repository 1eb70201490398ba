//! What an operator is told about a file.

use tenure_sqlite::SqliteStore;
use tenure_store::{Options, Store};

#[tokio::test]
async fn an_examination_tells_what_the_file_and_its_connection_really_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tenure.db");
    let store = SqliteStore::open(&path, Options::default()).await.unwrap();
    let findings = store.examine().await.unwrap().value;
    let value = |name: &str| {
        let finding = findings.iter().find(|finding| finding.name == name).unwrap();
        assert!(finding.fine, "{finding:?}");
        finding.value.clone()
    };
    assert!(value("file").contains("tenure.db"));
    assert_eq!(value("journal"), "wal");
    assert_eq!(value("synchronous"), "full");
    assert_eq!(value("schema"), "version 6");
    assert!(value("file system").starts_with("local"));
    assert_eq!(value("news"), "inotify");
}

#[tokio::test]
async fn a_file_of_another_version_is_no_longer_fine() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tenure.db");
    let store = SqliteStore::open(&path, Options::default()).await.unwrap();
    // As if a newer build had been at it while this one was running.
    let other = tenure_sqlite::rusqlite::Connection::open(&path).unwrap();
    other.execute("UPDATE tenure_meta SET schema = 99", []).unwrap();
    let findings = store.examine().await.unwrap().value;
    let schema = findings.iter().find(|finding| finding.name == "schema").unwrap();
    assert!(!schema.fine && schema.advice.is_some(), "{schema:?}");
}
