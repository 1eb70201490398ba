//! What is refused when a store is opened, with what to do about it, and without changing a byte.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;
use std::sync::Arc;

use crate::common::{misconfigured, mount, mount_read_only_over, place};
use rusqlite::Connection;
use tenure_sqlite::{SqliteStore, rusqlite};
use tenure_store::{News, Options, Store, StoreError, StoreUrl};
use tenure_testkit::patience::until;

async fn refusal(url: &str) -> String {
    let url = StoreUrl::parse(url).unwrap();
    match SqliteStore::connect(&url).await.map(|_| ()) {
        Err(error @ StoreError::Misconfigured(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_url_names_the_file() {
    let place = place();
    let url = format!("sqlite:{}?namespace=blue", place.path.display());
    let store = SqliteStore::connect(&StoreUrl::parse(&url).unwrap()).await.unwrap();
    assert!(place.path.exists());
    assert_eq!(store.capabilities().news, News::Push);
    assert_eq!(store.path(), place.path.canonicalize().unwrap());
}

#[tokio::test]
async fn a_wrong_url_is_refused_with_a_right_one() {
    assert!(refusal("sqlite:").await.contains("a right one is `sqlite:./tenure.db`"));
    assert!(refusal("sqlite::memory:").await.contains("`memory:`"));
    assert!(refusal("sqlite://host/x.db").await.contains("would name a host"));
    assert!(refusal("sqlite:x.db?mode=ro").await.contains("unknown parameter `mode`"));
}

#[tokio::test]
async fn a_missing_directory_is_refused_with_what_to_do() {
    let place = place();
    let problem = misconfigured(&place.dir.path().join("no/such/x.db")).await;
    assert!(problem.contains("does not exist; create it (`mkdir -p"), "{problem}");
    assert!(!place.dir.path().join("no").exists());
}

#[tokio::test]
async fn a_directory_is_refused() {
    let place = place();
    assert!(misconfigured(place.dir.path()).await.contains("is a directory; name a file in it"));
    assert!(misconfigured(std::path::Path::new("/")).await.contains("is a directory"));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_unchanged() {
    let place = place();
    let text = "dear diary, ".repeat(1_000);
    std::fs::write(&place.path, &text).unwrap();
    assert!(misconfigured(&place.path).await.contains("not a SQLite database"));
    assert_eq!(std::fs::read_to_string(&place.path).unwrap(), text);
}

#[tokio::test]
async fn a_damaged_database_is_refused_and_unchanged() {
    let place = place();
    drop(place.store().await);
    checkpoint(&place);
    let mut bytes = std::fs::read(&place.path).unwrap();
    bytes[100..4096].fill(0xA5); // the root of the schema
    std::fs::write(&place.path, &bytes).unwrap();
    let problem = misconfigured(&place.path).await;
    assert!(problem.contains("damaged"), "{problem}");
    assert_eq!(std::fs::read(&place.path).unwrap(), bytes);
}

/// Waits until the store's threads have let go of the file, and moves the log into it.
fn checkpoint(place: &common::Place) {
    let connection = place.by_hand();
    connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

#[tokio::test]
async fn a_file_of_another_product_is_refused_and_unchanged() {
    let place = place();
    place.by_hand().execute_batch("PRAGMA application_id = 252006674; CREATE TABLE fossil (x);").unwrap();
    let before = std::fs::read(&place.path).unwrap();
    let problem = misconfigured(&place.path).await;
    assert!(problem.contains("another product (its application_id is 0x0f055112)"), "{problem}");
    assert_eq!(std::fs::read(&place.path).unwrap(), before);
}

#[tokio::test]
async fn a_table_of_ours_in_another_shape_is_refused_and_unchanged() {
    for table in ["tenure_meta (key, value)", "tenure_records (professor)"] {
        let place = place();
        place.by_hand().execute_batch(&format!("CREATE TABLE {table}")).unwrap();
        let before = std::fs::read(&place.path).unwrap();
        assert!(misconfigured(&place.path).await.contains("that Tenure did not write"));
        assert_eq!(std::fs::read(&place.path).unwrap(), before);
    }
}

#[tokio::test]
async fn newer_tables_are_refused_and_unchanged() {
    let place = place();
    drop(place.store().await);
    checkpoint(&place);
    let connection = place.by_hand();
    connection.execute_batch("UPDATE tenure_meta SET schema = 99").unwrap();
    let problem = misconfigured(&place.path).await;
    assert!(problem.contains("version 99, which is newer") && problem.contains("upgrade"), "{problem}");
    let schema: i64 = connection.query_row("SELECT schema FROM tenure_meta", [], |row| row.get(0)).unwrap();
    assert_eq!(schema, 99);
}

#[tokio::test]
async fn tables_of_the_application_live_beside_ours() {
    let place = place();
    place.by_hand().execute_batch("CREATE TABLE reports (x); INSERT INTO reports VALUES (1);").unwrap();
    let _store = place.store().await;
    let connection = place.by_hand();
    let (rows, mark): (i64, i64) = (
        connection.query_row("SELECT count(*) FROM reports", [], |row| row.get(0)).unwrap(),
        connection.query_row("PRAGMA application_id", [], |row| row.get(0)).unwrap(),
    );
    assert_eq!((rows, mark), (1, 0), "the file is the application's, and stays so");
}

#[tokio::test]
async fn a_read_only_file_system_is_refused() {
    let place = place();
    let Some(disk) = mount(place.dir.path(), "size=4m") else { return };
    drop(place.store().await);
    checkpoint(&place);
    until("the threads of the store that was dropped have closed their files", || {
        let done =
            std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(place.dir.path()).output();
        done.unwrap().status.success()
    });
    assert!(misconfigured(&place.path).await.contains("write access to the file and its directory"));
    assert!(
        misconfigured(&place.dir.path().join("new.db"))
            .await
            .contains("write access to the file and its directory")
    );
    drop(disk);
}

#[tokio::test]
async fn a_read_only_file_in_a_writable_directory_is_refused() {
    let place = place();
    drop(place.store().await);
    checkpoint(&place);
    let Some(_cover) = mount_read_only_over(&place.path) else { return };
    assert!(misconfigured(&place.path).await.contains("read-only"));
}

#[test]
fn sixteen_connections_that_open_at_once_find_one_store() {
    let place = Arc::new(place());
    let barrier = Arc::new(std::sync::Barrier::new(16));
    let starts: Vec<_> = (0..16)
        .map(|number| {
            let (place, barrier) = (Arc::clone(&place), Arc::clone(&barrier));
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                barrier.wait();
                runtime.block_on(async {
                    let store = SqliteStore::open(&place.path, Options::default()).await.unwrap();
                    common::open(&store, number).await;
                    store.nodes().await.unwrap().store
                })
            })
        })
        .collect();
    let identities: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
    assert!(identities.windows(2).all(|pair| pair[0] == pair[1]));
    let nodes: i64 =
        place.by_hand().query_row("SELECT count(*) FROM tenure_nodes", [], |row| row.get(0)).unwrap();
    assert_eq!(nodes, 16);
}

#[tokio::test]
async fn a_locked_database_is_unavailable_not_misconfigured() {
    let place = place();
    let holder = Connection::open(&place.path).unwrap();
    holder.execute_batch("CREATE TABLE mine (x); BEGIN EXCLUSIVE").unwrap();
    let error = SqliteStore::open(&place.path, Options::default()).await.map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(error.to_string().contains("locked by another process"), "{error}");
}

#[tokio::test]
async fn threads_and_descriptors_end_with_the_store() {
    let place = place();
    let mine = |entries: std::fs::ReadDir| {
        entries
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .filter(|target| target.starts_with(place.dir.path().canonicalize().unwrap()))
            .count()
    };
    let open_files = || mine(std::fs::read_dir("/proc/self/fd").unwrap());
    for _ in 0..20 {
        let store = place.store().await;
        assert!(open_files() > 0);
        let _hints = store.news();
        drop(store);
    }
    until("all files are closed", || open_files() == 0);
}
