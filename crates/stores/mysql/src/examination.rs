//! Examination: what the server really does, not what it was asked to.

use serde::Deserialize;
use tenure_sql::Room;
use tenure_store::Finding;

/// What the procedure `tenure_examine` answers.
#[derive(Deserialize)]
pub struct ExaminationWords {
    version: String,
    flush: i64,
    binary_log: i64,
    sync_binlog: i64,
    binlog_format: String,
    cluster: Option<String>,
    layout: i32,
    triggers: i64,
    most: i64,
    used: i64,
    listeners: i64,
}

impl ExaminationWords {
    pub(crate) fn findings(self) -> Vec<Finding> {
        let log = match self.binary_log {
            0 => "off".to_owned(),
            _ => format!("{}, sync_binlog = {}", self.binlog_format, self.sync_binlog),
        };
        let room = Room { most: self.most, used: self.used, ours: 2 * self.listeners, per_node: 2 };
        let cluster = self.cluster.as_deref() == Some("ON");
        vec![
            Finding::new("server", true, self.version, ""),
            Finding::new("writable", true, "yes".to_owned(), ""),
            Finding::new(
                "durable log",
                self.flush == 1,
                format!("innodb_flush_log_at_trx_commit = {}", self.flush),
                "a granted term may be forgotten when the power fails: set it to 1",
            ),
            Finding::new(
                "binary log",
                self.binary_log == 0 || (self.sync_binlog == 1 && self.binlog_format != "STATEMENT"),
                log,
                "a granted term may be missing on a replica that is promoted after the power failed, or cannot be \
                 logged: set sync_binlog = 1 and binlog_format = ROW",
            ),
            Finding::new(
                "cluster",
                !cluster,
                if cluster { "Galera" } else { "no" }.to_owned(),
                "send all nodes to one member: what is promised of a cluster is in docs/stores/mysql.md",
            ),
            Finding::new("tables", true, format!("layout {}", self.layout), ""),
            Finding::new(
                "guards",
                self.triggers > 0,
                format!("{} triggers", self.triggers),
                "the server refused to make them, so edits by hand are not refused: set \
                 log_bin_trust_function_creators = 1, drop the table tenure_meta, and connect again",
            ),
            room.finding("raise max_connections"),
            Finding::new(
                "news",
                true,
                format!("{} connections wait for it in the server", self.listeners),
                "",
            ),
        ]
    }
}
