//! A lock in a row of MySQL, as in the two designs that Tenure's store there began from: the statements are their own,
//! but for `NOW() + INTERVAL n SECOND`. They have `NOW() + n`, which in most minutes is no time for n seconds.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, params};

use super::poller::{Lock, Pauses, run};
use crate::common::Outcome;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Design {
    /// A table `locks`.
    Locks,
    /// A table `helix_locks`, with an epoch.
    Helix,
}

const TABLES: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS locks (
        lock_key VARCHAR(255) PRIMARY KEY,
        owner_id VARCHAR(255) NOT NULL,
        expires_at TIMESTAMP NOT NULL
    )",
    "CREATE TABLE IF NOT EXISTS helix_locks (
        id           bigint unsigned NOT NULL AUTO_INCREMENT,
        lock_key     VARCHAR(255)    NOT NULL,
        owner_id     VARCHAR(255)    NOT NULL,
        expires_at   TIMESTAMP       NOT NULL,
        epoch        bigint          NOT NULL DEFAULT 0,
        status       TINYINT         NOT NULL DEFAULT 1,
        created_at   datetime        NOT NULL DEFAULT CURRENT_TIMESTAMP,
        updated_at   datetime        NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
        PRIMARY KEY (`id`),
        UNIQUE KEY `lock_key_status_unique_key` (`lock_key`, `status`),
        KEY `lock_key_ids` (`lock_key`)
    )",
];

impl Design {
    const fn table(self) -> &'static str {
        match self {
            Self::Locks => "locks",
            Self::Helix => "helix_locks",
        }
    }

    const fn acquire(self) -> &'static str {
        match self {
            Self::Locks => {
                "INSERT INTO locks (lock_key, owner_id, expires_at)
                 VALUES ('coordinator_lock', :id, NOW() + INTERVAL :ttl SECOND)
                 ON DUPLICATE KEY UPDATE
                     owner_id = IF(expires_at < NOW(), VALUES(owner_id), owner_id),
                     expires_at = IF(expires_at < NOW(), VALUES(expires_at), expires_at)"
            }
            Self::Helix => {
                "INSERT INTO helix_locks (lock_key, owner_id, expires_at, epoch, status)
                 VALUES ('coordinator_lock', :id, NOW() + INTERVAL :ttl SECOND, 1, 1)
                 ON DUPLICATE KEY UPDATE
                     owner_id   = IF(owner_id = VALUES(owner_id) OR expires_at < VALUES(expires_at), VALUES(owner_id), owner_id),
                     expires_at = IF(owner_id = VALUES(owner_id) OR expires_at < VALUES(expires_at), VALUES(expires_at), expires_at),
                     epoch      = IF(owner_id = VALUES(owner_id) OR expires_at < VALUES(expires_at), epoch + 1, epoch)"
            }
        }
    }

    const fn renew(self) -> &'static str {
        match self {
            Self::Locks => {
                "UPDATE locks SET expires_at = NOW() + INTERVAL :ttl SECOND
                 WHERE lock_key = 'coordinator_lock' AND owner_id = :id"
            }
            Self::Helix => self.acquire(),
        }
    }
}

pub fn part(id: &str, design: Design, url: &str, ttl: Duration) -> Outcome<()> {
    run(async { Ok(Row { conn: connect(url).await?, id: id.to_owned(), design, ttl }) })
}

/// By the port of the URL: the driver would go over to a socket past it.
async fn connect(url: &str) -> Outcome<Conn> {
    let options = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false);
    Ok(Conn::new(options).await?)
}

/// Before there are candidates.
pub async fn make_tables(url: &str) -> Outcome<()> {
    let mut conn = connect(url).await?;
    for table in TABLES {
        conn.query_drop(table).await?;
    }
    Ok(conn.disconnect().await?)
}

struct Row {
    conn: Conn,
    id: String,
    design: Design,
    ttl: Duration,
}

impl Row {
    async fn ask<T: mysql_async::prelude::FromValue + Send + 'static>(
        &mut self,
        what: &str,
    ) -> Outcome<Option<T>> {
        let table = self.design.table();
        let sql = format!("SELECT {what} FROM {table} WHERE lock_key = 'coordinator_lock'");
        Ok(self.conn.query_first(sql).await?)
    }

    /// "After executing this query, the node must read the table again."
    async fn is_mine(&mut self) -> Outcome<bool> {
        Ok(self.ask::<String>("owner_id").await?.is_some_and(|owner| owner == self.id))
    }

    async fn execute(&mut self, sql: &str) -> Outcome<()> {
        let params = params! { "id" => &self.id, "ttl" => self.ttl.as_secs() };
        Ok(self.conn.exec_drop(sql, params).await?)
    }
}

impl Lock for Row {
    /// With a time-out of 10 s, both look every 10 s and renew every 5 s.
    fn pauses(&self) -> Pauses {
        Pauses { refused: self.ttl, held: self.ttl / 2 }
    }

    async fn acquire(&mut self) -> Outcome<bool> {
        if self.ask::<bool>("expires_at >= NOW()").await? == Some(true) {
            return Ok(false);
        }
        self.execute(self.design.acquire()).await?;
        self.is_mine().await
    }

    async fn keep(&mut self) -> Outcome<bool> {
        self.execute(self.design.renew()).await?;
        self.is_mine().await
    }

    async fn release(&mut self) -> Outcome<()> {
        Err("there is no release".into())
    }
}
