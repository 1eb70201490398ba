//! A transaction of the application that was given up.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_mysql::mysql_async::Transaction;
use tenure_mysql::mysql_async::prelude::Queryable;
use tenure_testkit::proxy::Proxy;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{calm, lead, soon, start};

use crate::common::{Place, by_hand, told};

/// Connections are numbered by each server for itself. After a failover, the number of the connection whose transaction
/// was given up may be a stranger's.
#[tokio::test]
async fn a_transaction_that_was_given_up_ends_no_connection_of_another_server() {
    let (first, second) = (Place::start(), Place::start_talkative());
    // So that the number is still to be given on the second one.
    for _ in 0..50 {
        by_hand(&first.url()).await;
    }
    let proxy = Proxy::before(first.port());
    let leadership = lead(&start(calm("a"), &first.url_by(proxy.port())).await).await;
    let number = AtomicU64::new(0);
    let work = async |transaction: &mut Transaction<'_>| {
        let own: Option<u64> = transaction.query_first("SELECT CONNECTION_ID()").await?;
        number.store(own.unwrap(), Ordering::Release);
        pending::<Result<(), tenure_mysql::mysql_async::Error>>().await
    };
    let mut transaction = Box::pin(leadership.mysql_transaction(work));
    let begun = async {
        while number.load(Ordering::Acquire) == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    soon(async {
        tokio::select! {
            _ = &mut transaction => unreachable!("it waits for ever"),
            () = begun => {}
        }
    })
    .await;
    let number = number.load(Ordering::Acquire).to_string();
    let find = async {
        loop {
            // Otherwise each takes two numbers: its own, and one for a socket in its place.
            let mut stranger = by_hand(&format!("{}?prefer_socket=false", second.url())).await;
            if told(&mut stranger, "SELECT CONNECTION_ID()").await.unwrap() == number {
                return stranger;
            }
        }
    };
    let mut stranger = soon(find).await;
    proxy.redirect(second.port());
    drop(transaction);
    let asked = || std::fs::read_to_string(second.0.data().join("../asked")).unwrap();
    soon(async {
        while !asked().contains("KILL") && !asked().contains("IS_USED_LOCK") {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
    assert!(!asked().contains("KILL"), "{}", asked());
    assert_eq!(told(&mut stranger, "SELECT 1").await.unwrap(), "1");
}
