//! The ledger: rows in the store's own file, written by fenced transactions. Their numbers rise in
//! the order of their commits.

use tenure::sqlite::rusqlite::{self, Transaction};
use tenure::sqlite::{SqliteStore, TransactionError as StoreTransactionError};
use tenure::{Leadership, Store, TransactionError};
use tenure_store::clock;

/// A row of the ledger.
#[derive(Clone, Debug)]
pub struct Entry {
    pub election: String,
    pub node: String,
    pub term: u64,
    pub seq: u64,
    /// Why it was written.
    pub note: &'static str,
}

impl Entry {
    pub fn of(leadership: &Leadership, node: &str, seq: u64, note: &'static str) -> Self {
        let (election, node) = (leadership.election().as_str().to_owned(), node.to_owned());
        Self { election, node, term: leadership.term().number(), seq, note }
    }

    /// Writes the row, and the table if this is a new file.
    pub fn write(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS ledger (
                 id INTEGER PRIMARY KEY AUTOINCREMENT, election TEXT, node TEXT, pid INTEGER,
                 term INTEGER, seq INTEGER, note TEXT, at INTEGER)",
        )?;
        transaction.execute(
            "INSERT INTO ledger (election, node, pid, term, seq, note, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            rusqlite::params![
                self.election,
                self.node,
                std::process::id(),
                self.term.cast_signed(),
                self.seq.cast_signed(),
                self.note,
                clock::now().as_nanos().cast_signed(),
            ],
        )?;
        Ok(())
    }
}

/// Writes as an application does.
pub async fn write(leadership: &Leadership, entry: Entry) -> &'static str {
    match leadership.transaction(move |transaction| entry.write(transaction)).await {
        Ok(()) => "accepted",
        Err(TransactionError::NotLeader(_)) => "not_leader",
        Err(TransactionError::Store(error)) => of_store(&error),
        Err(_) => "failed",
    }
}

/// Writes without asking the leader's own clock, so that only the store can refuse: what a process
/// does that was paused right after its check.
pub async fn write_unchecked(store: &dyn Store, leadership: &Leadership, entry: Entry) -> &'static str {
    let Some(store) = store.as_any().downcast_ref::<SqliteStore>() else { return "failed" };
    let outcome = store.transaction(leadership.lease(), || true, move |t| entry.write(t)).await;
    outcome.map_or_else(|error| of_store(&error), |()| "accepted")
}

fn of_store(error: &StoreTransactionError<rusqlite::Error>) -> &'static str {
    match error {
        StoreTransactionError::NotHeld => "not_held",
        StoreTransactionError::Store(_) => "unanswered",
        _ => "failed",
    }
}
