//! The register: a resource that Tenure does not own, which compares terms, and logs every write
//! that it was asked for.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure::sqlite::rusqlite::{self, Connection, OptionalExtension, TransactionBehavior, params};
use tenure::{Fence, Term};

use crate::ledger::Entry;

/// A candidate that is stopped in the midst of a write keeps the register from others: they go on
/// without it rather than stop leading for its sake.
const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub struct Register(Arc<Mutex<Connection>>);

impl Register {
    pub fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Asks for a write, and tells what the register said.
    pub async fn write(&self, entry: Entry) -> &'static str {
        let register = self.clone();
        let written = tokio::task::spawn_blocking(move || register.judge(&entry)).await;
        match written {
            Ok(Ok(true)) => "accepted",
            Ok(Ok(false)) => "refused",
            Ok(Err(_)) | Err(_) => "unanswered",
        }
    }

    fn judge(&self, entry: &Entry) -> rusqlite::Result<bool> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let highest: Option<i64> = transaction
            .query_row("SELECT term FROM fence WHERE election = ?1", [&entry.election], |row| row.get(0))
            .optional()?;
        let mut fence = Fence::resume(Term::new(highest.unwrap_or(0).cast_unsigned()));
        let accepted = fence.admit(Term::new(entry.term)).is_ok();
        transaction.execute(
            "INSERT INTO fence (election, term) VALUES (?1, ?2)
             ON CONFLICT (election) DO UPDATE SET term = excluded.term",
            params![entry.election, fence.highest().number().cast_signed()],
        )?;
        transaction.execute(
            "INSERT INTO writes (election, node, pid, term, accepted) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![entry.election, entry.node, std::process::id(), entry.term.cast_signed(), accepted],
        )?;
        transaction.commit()?;
        Ok(accepted)
    }
}
