//! A lease in a row of PostgreSQL, as in the design that Tenure's store there began from: the statements are its own.

use std::time::Duration;

use tokio_postgres::Client;

use super::advisory::connect;
use super::poller::{Lock, Pauses, run};
use crate::common::Outcome;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS leader_lease (
    id INTEGER PRIMARY KEY DEFAULT 1,
    leader_id VARCHAR(255) NOT NULL,
    term INTEGER NOT NULL,
    acquired_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    renewed_at TIMESTAMP NOT NULL,
    hostname VARCHAR(255) NOT NULL,
    api_url VARCHAR(512) NOT NULL,
    CONSTRAINT single_lease CHECK (id = 1)
)";

const ACQUIRE: &str = "INSERT INTO leader_lease
        (id, leader_id, term, acquired_at, expires_at, renewed_at, hostname, api_url)
    VALUES (1, $1, $2, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP + $3 * INTERVAL '1 second', CURRENT_TIMESTAMP, $1, $1)
    ON CONFLICT (id) DO UPDATE SET
        leader_id = EXCLUDED.leader_id,
        term = EXCLUDED.term,
        acquired_at = CURRENT_TIMESTAMP,
        expires_at = CURRENT_TIMESTAMP + $3 * INTERVAL '1 second',
        renewed_at = CURRENT_TIMESTAMP,
        hostname = EXCLUDED.hostname,
        api_url = EXCLUDED.api_url
    WHERE leader_lease.expires_at <= CURRENT_TIMESTAMP OR leader_lease.term < EXCLUDED.term";

const RENEW: &str = "UPDATE leader_lease
    SET expires_at = CURRENT_TIMESTAMP + $3 * INTERVAL '1 second', renewed_at = CURRENT_TIMESTAMP
    WHERE leader_id = $1 AND term = $2";

/// The term of the lease, and whether it is valid.
const SEEN: &str = "SELECT term, expires_at > CURRENT_TIMESTAMP FROM leader_lease";

pub fn part(id: &str, url: &str, ttl: Duration) -> Outcome<()> {
    run(async { Ok(Lease { client: connect(url).await?, id: id.to_owned(), term: 0, ttl }) })
}

/// Before there are candidates: two that make a table at once fail.
pub async fn make_table(url: &str) -> Outcome<()> {
    Ok(connect(url).await?.batch_execute(TABLE).await?)
}

struct Lease {
    client: Client,
    id: String,
    term: i32,
    ttl: Duration,
}

impl Lock for Lease {
    /// With a lease of 30 s, that design looks every 5 s and renews every 10 s.
    fn pauses(&self) -> Pauses {
        Pauses { refused: self.ttl / 6, held: self.ttl / 3 }
    }

    async fn acquire(&mut self) -> Outcome<bool> {
        if let Some(seen) = self.client.query_opt(SEEN, &[]).await? {
            if seen.try_get(1)? {
                return Ok(false);
            }
            self.term = seen.try_get(0)?;
        }
        self.term += 1;
        let ttl = self.ttl.as_secs_f64();
        Ok(self.client.execute(ACQUIRE, &[&self.id, &self.term, &ttl]).await? > 0)
    }

    async fn keep(&mut self) -> Outcome<bool> {
        let ttl = self.ttl.as_secs_f64();
        Ok(self.client.execute(RENEW, &[&self.id, &self.term, &ttl]).await? > 0)
    }

    /// The design names a release and does not show it.
    async fn release(&mut self) -> Outcome<()> {
        Err("there is no release".into())
    }
}
