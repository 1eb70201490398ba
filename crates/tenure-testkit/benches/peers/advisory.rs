//! An advisory lock of PostgreSQL: it hangs from a connection, so it has no time to live.

use std::time::Duration;

use tokio_postgres::{Client, NoTls};

use super::poller::{Lock, Pauses, run};
use crate::common::Outcome;

/// How often a poller asks. Ten times as often as most do.
pub const POLL: Duration = Duration::from_millis(100);

/// To ask for it again and again.
pub const POLLS: &[&str] = &["advisory", "polls"];
/// To wait for it in the server.
pub const WAITS: &[&str] = &["advisory", "waits"];

pub fn part(how: &str, url: &str) -> Outcome<()> {
    run(async { Ok(Advisory { client: connect(url).await?, waits: how == "waits" }) })
}

/// A connection that is driven beside.
pub async fn connect(url: &str) -> Outcome<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

struct Advisory {
    client: Client,
    waits: bool,
}

impl Lock for Advisory {
    fn pauses(&self) -> Pauses {
        Pauses { refused: POLL, held: POLL }
    }

    async fn acquire(&mut self) -> Outcome<bool> {
        if self.waits {
            self.client.batch_execute("SELECT pg_advisory_lock(1)").await?;
            return Ok(true);
        }
        Ok(self.client.query_one("SELECT pg_try_advisory_lock(1)", &[]).await?.try_get(0)?)
    }

    /// It has the lock as long as it has the connection.
    async fn keep(&mut self) -> Outcome<bool> {
        self.client.batch_execute("SELECT 1").await?;
        Ok(true)
    }

    async fn release(&mut self) -> Outcome<()> {
        Ok(self.client.batch_execute("SELECT pg_advisory_unlock(1)").await?)
    }
}
