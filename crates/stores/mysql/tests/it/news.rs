//! How nodes wait for news in the server.

use crate::common::Place;
use tenure_testkit::sql::SqlServer;
use tenure_testkit::sql::stage::{ask, calm, lead, soon, start, until};

const SLEEP: &str = "information_schema.PROCESSLIST WHERE STATE = 'User sleep'";
const WAIT: &str = "information_schema.PROCESSLIST WHERE STATE = 'User lock'";

/// If more than one slept, whoever wakes them up would be held up for two seconds now and then.
#[tokio::test]
async fn one_connection_of_a_server_sleeps_and_if_it_ends_another_one_does() {
    let place = Place::start();
    let mut nodes = Vec::new();
    for id in ["a", "b", "c"] {
        nodes.push(start(calm(id), &place.url()).await);
    }
    let settled = format!("SELECT (SELECT COUNT(*) FROM {SLEEP}) = 1 AND (SELECT COUNT(*) FROM {WAIT}) = 2");
    until(&place, &settled).await;

    // They are woken up by an election, read of it, and wait as before.
    let leadership = lead(&nodes[0]).await;
    until(&place, &settled).await;
    soon(leadership.resign()).await.unwrap();
    until(&place, &settled).await;

    let sleeper = ask(&place, &format!("SELECT ID FROM {SLEEP}")).await;
    ask(&place, &format!("KILL {sleeper}")).await;
    until(&place, &format!("SELECT COUNT(*) FROM {SLEEP} AND ID <> {sleeper}")).await;
    until(&place, &settled).await;
}
