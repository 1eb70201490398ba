//! Examination: what the server really does, not what it was asked to.

use serde::Deserialize;
use tenure_sql::Room;
use tenure_store::Finding;

/// What the function `examine` answers.
#[derive(Deserialize)]
pub struct ExaminationWords {
    version: String,
    recovering: bool,
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    standbys: String,
    layout: i32,
    most: i64,
    used: i64,
    ours: i64,
}

impl ExaminationWords {
    pub(crate) fn findings(self, news: &str) -> Vec<Finding> {
        let room = Room { most: self.most, used: self.used, ours: self.ours, per_node: 1 };
        let standbys = if self.standbys.is_empty() { "none".to_owned() } else { self.standbys };
        vec![
            Finding::new("server", true, format!("PostgreSQL {}", self.version), ""),
            Finding::new(
                "writable",
                !self.recovering,
                if self.recovering { "in recovery" } else { "yes" }.to_owned(),
                "this is a replica; name the primary too: postgres://user@primary,replica/database",
            ),
            Finding::new(
                "fsync",
                self.fsync == "on",
                self.fsync,
                "a granted term may be forgotten when the power fails: turn it on",
            ),
            Finding::new(
                "full page writes",
                self.full_page_writes == "on",
                self.full_page_writes,
                "a crash may tear pages: turn them on, unless the file system cannot tear them",
            ),
            // Set for every write of Tenure's own, so what the database was told does not matter.
            Finding::new(
                "synchronous commit",
                true,
                format!("{}; Tenure's own writes: on", self.synchronous_commit),
                "",
            ),
            Finding::new("synchronous standbys", true, standbys, ""),
            Finding::new("schema", true, format!("layout {}", self.layout), ""),
            room.finding("raise max_connections, or use PgBouncer"),
            Finding::new("news", true, news.to_owned(), ""),
        ]
    }
}
