//! Transactions of the application, carried out only while its lease is held.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use tenure_store::{Lease, TransactionError};

use crate::database::Database;
use crate::error::{Phase, Stop};

/// How a transaction ended without a value.
pub(crate) enum Ended<E> {
    Error(TransactionError<E>),
    /// The work panicked; nothing was written, and the panic goes on where the work came from.
    Panic(Box<dyn Any + Send>),
}

impl<E> From<TransactionError<E>> for Ended<E> {
    fn from(error: TransactionError<E>) -> Self {
        Self::Error(error)
    }
}

/// The connection for fenced transactions: not the protocol's, so that a long one only competes
/// for the write lock, and a renewal never waits behind it in a queue.
pub(crate) struct Fence {
    database: Database,
    guard: Guard,
}

impl Fence {
    pub(crate) fn new(database: Database) -> Self {
        Self { database, guard: Guard::default() }
    }

    /// Runs `work` in a transaction that is committed only if the lease is held before and after
    /// it, and `still` agrees both times.
    pub(crate) fn run<T, E>(
        &mut self,
        lease: &Lease,
        still: &dyn Fn() -> bool,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, Ended<E>> {
        let namespace = self.database.namespace().to_owned();
        let connection = &mut self.database.current().map_err(TransactionError::Store)?.connection;
        let held = |transaction: &Connection| Ok(still() && holds(transaction, &namespace, lease)?);
        let outcome = fenced(connection, &self.guard, &held, work);
        outcome.map_err(|failed| {
            let (error, phase) = match failed {
                Failed::Ended(ended) => return ended,
                Failed::Sql(error) => (error, Phase::Work),
                Failed::Commit(error) => (error, Phase::Commit),
            };
            TransactionError::Store(self.database.fail(Stop::Sql(error), phase)).into()
        })
    }
}

fn fenced<T, E>(
    connection: &mut Connection,
    guard: &Guard,
    held: &dyn Fn(&Connection) -> rusqlite::Result<bool>,
    work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, Failed<E>> {
    guard.watch_over(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !held(&transaction)? {
        return Err(Failed::Ended(TransactionError::NotHeld.into()));
    }
    let value = guard.run(&transaction, work).map_err(Failed::Ended)?;
    if !held(&transaction)? {
        return Err(Failed::Ended(TransactionError::NotHeld.into()));
    }
    transaction.commit().map_err(Failed::Commit)?;
    Ok(value)
}

/// What stopped a transaction, and where.
enum Failed<E> {
    Sql(rusqlite::Error),
    Commit(rusqlite::Error),
    Ended(Ended<E>),
}

impl<E> From<rusqlite::Error> for Failed<E> {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

fn holds(connection: &Connection, namespace: &str, lease: &Lease) -> rusqlite::Result<bool> {
    // No such term was ever granted if it does not fit the column.
    let Ok(term) = i64::try_from(lease.term.number()) else { return Ok(false) };
    let found = connection
        .prepare_cached(
            "SELECT 1 FROM tenure_elections e JOIN tenure_sessions s ON s.id = e.session AND s.state = 'live'
             WHERE e.namespace = ?1 AND e.election = ?2 AND e.session = ?3 AND e.term = ?4",
        )?
        .query_row((namespace, lease.election.as_str(), lease.session.to_string(), term), |_| Ok(()))
        .optional()?;
    Ok(found.is_some())
}

/// Keeps the work inside its transaction, and away from Tenure's tables, while it runs.
#[derive(Default)]
struct Guard(Arc<AtomicBool>);

impl Guard {
    /// Installs the guard on a connection. It sleeps until [`Guard::run`].
    fn watch_over(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        // The application's statements are planned for their values, as on its own connections.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, false)?;
        let awake = Arc::clone(&self.0);
        connection.authorizer(Some(move |request: AuthContext<'_>| {
            if awake.load(Ordering::Relaxed) { judge(request.action) } else { Authorization::Allow }
        }))?;
        // If the transaction ends all the same (a conflict that rolls back, a full disk), the next
        // statement would commit by itself. This turns every such commit into a rollback.
        let awake = Arc::clone(&self.0);
        connection.commit_hook(Some(move || awake.load(Ordering::Relaxed)))
    }

    fn run<T, E>(
        &self,
        transaction: &Transaction<'_>,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, Ended<E>> {
        self.0.store(true, Ordering::Relaxed);
        // Whatever a panic leaves behind is rolled back, and the work itself is consumed.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(transaction)));
        self.0.store(false, Ordering::Relaxed);
        let value = outcome.map_err(Ended::Panic)?.map_err(TransactionError::Work)?;
        if transaction.is_autocommit() {
            return Err(TransactionError::Broken.into());
        }
        Ok(value)
    }
}

/// What the work may do: anything but end its transaction, or touch what the fence stands on.
fn judge(action: AuthAction<'_>) -> Authorization {
    use AuthAction::*;
    let allowed = match action {
        Transaction { .. } | Attach { .. } | Detach { .. } => false,
        Insert { table_name }
        | Delete { table_name }
        | Update { table_name, .. }
        | DropTable { table_name }
        | CreateTable { table_name }
        | AlterTable { table_name, .. }
        | CreateIndex { table_name, .. }
        | DropIndex { table_name, .. }
        | CreateTrigger { table_name, .. }
        | CreateTempTrigger { table_name, .. }
        | DropTrigger { table_name, .. } => !is_ours(table_name),
        // A temporary table or view of this name would be read in place of ours.
        CreateTempTable { table_name } | CreateVtable { table_name, .. } => !is_ours(table_name),
        CreateView { view_name } | CreateTempView { view_name } | DropView { view_name } => {
            !is_ours(view_name)
        }
        Pragma { pragma_name, pragma_value } => pragma_value.is_none() || is_harmless(pragma_name),
        _ => true,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}

fn is_ours(name: &str) -> bool {
    name.get(..7).is_some_and(|prefix| prefix.eq_ignore_ascii_case("tenure_"))
}

/// Pragmas with an argument that change nothing, or nothing beyond the transaction.
fn is_harmless(pragma: &str) -> bool {
    const HARMLESS: &[&str] = &[
        "table_info",
        "table_xinfo",
        "table_list",
        "index_info",
        "index_xinfo",
        "index_list",
        "foreign_key_list",
        "foreign_key_check",
        "integrity_check",
        "quick_check",
        "defer_foreign_keys",
        "user_version",
    ];
    HARMLESS.iter().any(|harmless| pragma.eq_ignore_ascii_case(harmless))
}
