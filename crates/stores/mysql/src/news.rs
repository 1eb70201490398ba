//! News: a connection that sleeps in the server until somebody wakes it up.
//!
//! MySQL has nothing that notifies. But whoever has changed something can interrupt the sleep of those who wait
//! for it (`tenure_ring` in `parts.sql`, `tenure_listen` in `looks.sql`), and a sleep costs a server nothing.

use std::time::Duration;

use mysql_async::{Conn, Error};
use serde::Deserialize;
use tenure_core::{ElectionName, Namespace, NodeId};
use tenure_sql::{Ears, Value};
use tenure_store::{Changes, EventKind, Hint, StoreError, clock};

use crate::address::Address;
use crate::connect::connect;
use crate::database::{answers, calling};
use crate::error::classify;

/// How often in a row a sleep may end early and for nothing. It does when a change was read before its maker
/// came to ring: then the ring wakes up the next sleep.
const FALSE_ALARMS: u32 = 20;
/// How soon a sleep is begun again after so many.
const RETRY: Duration = Duration::from_millis(500);
/// How often a call that was interrupted before or after it slept is made again: once for each ring that came
/// at the wrong moment.
const INTERRUPTIONS: u32 = 20;
/// How long one sleep takes if nothing happens. A server notices only then that its sleeper is gone.
const SLEEP: Duration = Duration::from_secs(20);
/// More are not told one by one.
const MANY: usize = 1000;

/// Listens on one connection until it ends.
pub(crate) async fn hear(address: &Address, namespace: &Namespace, ears: &Ears) -> Result<(), StoreError> {
    let mut connection = connect(address).await?.connection;
    let (mut last, _) = happened(&mut connection, namespace, None).await?;
    ears.open();
    let mut false_alarms = 0;
    while ears.are_left() {
        let began = clock::now();
        let patience = SLEEP + address.patience;
        let news = tokio::time::timeout(patience, happened(&mut connection, namespace, Some(last))).await;
        let news =
            news.map_err(|_| StoreError::unavailable("there was no answer for longer than a sleep"))?;
        let (latest, events) = news?;
        let alarmed = latest == last && clock::now().since(began) < SLEEP / 2;
        false_alarms = if alarmed { false_alarms + 1 } else { 0 };
        if false_alarms > FALSE_ALARMS {
            tokio::time::sleep(RETRY).await;
        }
        last = latest;
        match changes(&events) {
            Some(changes) if events.len() <= MANY => ears.tell_changes(changes),
            _ => ears.tell(&Hint::All),
        }
    }
    Ok(())
}

/// Whom these lines of history concern; nobody knows if one is not ours.
fn changes(events: &[String]) -> Option<Changes> {
    let mut changes = Changes::default();
    for event in events {
        let Event { kind, election, node } = serde_json::from_str(event).ok()?;
        match election {
            Some(election) => {
                let node = node.map(NodeId::new).transpose().ok()?;
                changes.note(EventKind::from_name(&kind)?, &ElectionName::new(election).ok()?, node.as_ref());
            }
            None => changes.note_nodes(),
        }
    }
    Some(changes)
}

#[derive(Deserialize)]
struct Event {
    kind: String,
    election: Option<String>,
    node: Option<String>,
}

/// What has happened after this id, when something has.
async fn happened(
    connection: &mut Conn,
    namespace: &Namespace,
    after: Option<i64>,
) -> Result<(i64, Vec<String>), StoreError> {
    let seconds = i32::try_from(SLEEP.as_secs()).unwrap_or(i32::MAX);
    let namespace = Value::Text(Some(namespace.as_str().to_owned()));
    let sql = calling("listen", &[namespace, Value::Number(after), Value::Small(seconds)]);
    let mut interruptions = 0;
    let mut sets = loop {
        match answers(connection, &sql).await {
            Err(Error::Server(error)) if error.code == INTERRUPTED && interruptions < INTERRUPTIONS => {
                interruptions += 1;
            }
            answer => break answer.map_err(|error| classify(error).error)?.into_iter(),
        }
    };
    let last = sets.next().and_then(|lines| lines.first()?.parse().ok());
    let last = last.ok_or_else(|| StoreError::misconfigured("the procedure tenure_listen is not ours"))?;
    Ok((last, sets.next().unwrap_or_default()))
}

const INTERRUPTED: u16 = 1317;
