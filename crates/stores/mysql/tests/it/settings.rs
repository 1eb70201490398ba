//! Whatever a server or a session has been told, the same happens.

use crate::common::{FAST, Place, told};
use tenure_mysql::mysql_async::{Conn, Opts, OptsBuilder};
use tenure_testkit::server::MariaDb;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{ELECTION, ask, calm, lead, renewals, soon, stand, start};

/// Two nodes, all transitions, names that need care, a fenced write, and what people read.
async fn lives_through(settings: &[&str]) {
    let place = Place(MariaDb::start_with(settings));
    ask(&place, "CREATE TABLE ledger (entry VARCHAR(100)) ENGINE = InnoDB").await;
    let (a, b) = (start(calm("it's \\ \"a\""), &place.url()).await, start(calm("b"), &place.url()).await);
    let first = lead(&a).await;
    let write = "INSERT INTO ledger VALUES ('an entry')";
    soon(Place::fenced(&first, write, std::future::ready(Ok(())))).await.unwrap();
    let successor = stand(&b);
    renewals(&a, 3).await;
    assert!(first.check().is_ok(), "{settings:?}");
    soon(first.resign()).await.unwrap();
    let second = soon(successor).await.unwrap();
    assert_eq!(second.term().number(), 2, "{settings:?}");
    soon(a.election(ELECTION).unwrap().delete()).await.unwrap_err();
    drop(second);
    b.close().await;
    let third = lead(&a).await;
    assert_eq!(third.term().number(), 3, "{settings:?}");
    let granted = "SELECT COUNT(*) FROM {t}events WHERE kind = 'leader_elected'";
    assert_eq!(ask(&place, granted).await, "3", "{settings:?}");
    assert_eq!(ask(&place, "SELECT COUNT(*) FROM ledger").await, "1", "{settings:?}");
    // UTC, whatever the server's own zone is.
    let off = "SELECT COUNT(*) FROM {t}leases
               WHERE ABS(TIMESTAMPDIFF(SECOND, renewed_at, UTC_TIMESTAMP())) < 30 AND expires_at > renewed_at";
    assert_eq!(ask(&place, off).await, "1", "{settings:?}");
}

#[tokio::test]
async fn every_sql_mode() {
    lives_through(&[FAST, "sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE"]).await;
    lives_through(&[FAST, "sql-mode="]).await;
    lives_through(&[FAST, "sql-mode=TRADITIONAL,ONLY_FULL_GROUP_BY,PAD_CHAR_TO_FULL_LENGTH"]).await;
    // A mode of MariaDB only.
    if !MariaDb::is_mysql() {
        lives_through(&[FAST, "sql-mode=ORACLE"]).await;
    }
}

#[tokio::test]
async fn every_isolation_and_no_autocommit() {
    lives_through(&[FAST, "transaction-isolation=SERIALIZABLE", "autocommit=0"]).await;
    lives_through(&[FAST, "transaction-isolation=READ-UNCOMMITTED", "completion-type=CHAIN"]).await;
}

#[tokio::test]
async fn every_time_zone_character_set_and_log() {
    // MySQL accepts another value only when its data directory is initialized.
    let names = if MariaDb::is_mysql() { "lower-case-table-names=0" } else { "lower-case-table-names=1" };
    lives_through(&[FAST, "default-time-zone=+13:00", "character-set-server=latin1", names]).await;
    lives_through(&[FAST, "default-time-zone=-11:00", "log-bin=b", "server-id=7", "binlog-format=ROW"]).await;
    lives_through(&[FAST, "character-set-server=ucs2", "collation-server=ucs2_swedish_ci"]).await;
}

/// Seed defect 3. How many rows a statement has "affected" depends on this flag, and says nothing about who holds
/// a lease: the procedures answer the same to a client with it and to one without, also when a renewal is
/// repeated at once.
#[tokio::test]
async fn clients_that_count_rows_found_and_clients_that_count_rows_changed_are_told_the_same() {
    let place = Place::start();
    drop(soon(Place::connect(tenure_store::StoreUrl::parse(&place.url()).unwrap())).await.unwrap());
    let mut answers = Vec::new();
    for (found, session) in [(true, "1"), (false, "2")] {
        let options = OptsBuilder::from_opts(Opts::from_url(&place.url()).unwrap()).client_found_rows(found);
        let mut client = Conn::new(options).await.unwrap();
        let mut said = Vec::new();
        for call in [
            "open('default', 9, '{}', 1, 10000, 'n{}', 'host', NULL, 1, '1', '[]', NULL, NULL, NULL)",
            "claim('default', 9, '{}', 'e{}', 1, 0, NULL, NULL, 0, 0, NULL)",
            "claim('default', 9, '{}', 'e{}', 1, 0, NULL, NULL, 0, 0, NULL)",
            "renew('default', '{}', 2)",
            "renew('default', '{}', 2)",
            "resign('default', 9, '{}', 'e{}', 2, 1, NULL, '{ }')",
        ] {
            let call = format!("CALL tenure_{}", call.replace("{}", session));
            said.push(told(&mut client, &call).await.unwrap());
        }
        assert!(said[1].contains("\"granted\": 1") && said[2].contains("\"granted\": 1"), "{said:?}");
        answers.push(said);
    }
    assert_eq!(answers[0], answers[1]);
}
