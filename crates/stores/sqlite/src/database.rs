//! The file: opened, noticed when it is replaced, and read and written in transactions.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use tenure_core::{Instant, StoreIdentity};
use tenure_store::{Options, Reply, Setup, StoreError, Told, clock};

use crate::error::{Phase, Stop, classify, code};
use crate::lock::{Contention, Holder};
use crate::moment::Moment;
use crate::news;
use crate::place::{self, FileId};
use crate::schema::{self, Found};
use crate::verbs::{self, Scope};

/// More than there are statements, so that each is prepared once.
const STATEMENTS: usize = 64;

/// How long a first connection waits while others set the file up.
const SETTING_UP: Duration = Duration::from_secs(5);

/// How long a statement waits for a lock.
const LOCKED: Duration = Duration::from_secs(1);

/// Waits for a lock, looking often: SQLite's own handler sleeps for up to a tenth of a second
/// between looks, which would show in every hand-over.
fn wait(looked: i32) -> bool {
    thread_local! {
        // A connection stays on its thread, and waits for one lock at a time.
        static SINCE: Cell<Instant> = const { Cell::new(Instant::ZERO) };
    }
    let now = clock::now();
    if looked == 0 {
        SINCE.set(now);
    }
    let pause = if looked < 50 { Duration::from_micros(200) } else { Duration::from_millis(2) };
    std::thread::sleep(pause);
    now.since(SINCE.get()) < LOCKED
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    ReadWrite,
    /// It can neither hold the write lock, nor wait for it.
    ReadOnly,
}

/// One connection to the file, reopened when it must be.
pub(crate) struct Database {
    path: PathBuf,
    options: Options,
    access: Access,
    contention: Contention,
    opened: Option<Opened>,
}

/// A connection, and which file it leads to.
pub(crate) struct Opened {
    pub connection: Connection,
    file: FileId,
}

impl Database {
    /// Names the file; nothing is opened yet.
    pub(crate) fn new(path: PathBuf, options: Options) -> Self {
        let contention = Contention::default();
        Self { path, options, access: Access::ReadWrite, contention, opened: None }
    }

    /// Another connection to the same file.
    pub(crate) fn another(&self) -> Self {
        let contention = self.contention.clone();
        Self { contention, ..Self::new(self.path.clone(), self.options.clone()) }
    }

    /// Another connection to the same file, which only reads.
    pub(crate) fn reader(&self) -> Self {
        Self { access: Access::ReadOnly, ..self.another() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn namespace(&self) -> &str {
        self.options.namespace.as_str()
    }

    /// Opens the file for the first time, and creates it if need be and allowed.
    pub(crate) fn connect(&mut self) -> Result<(), StoreError> {
        let setup = self.options.setup;
        if setup == Setup::Never && !self.path.try_exists().unwrap_or(true) {
            let problem = format!("the database file `{}` does not exist", self.path.display());
            return Err(StoreError::not_set_up(problem));
        }
        self.path = place::settle(&self.path)?;
        if setup == Setup::Never {
            self.look()?;
        }
        let until = clock::now() + SETTING_UP;
        loop {
            match open(&self.path, self.access, setup == Setup::Create) {
                // Turning on the write-ahead log does not wait for locks: it fails at once when
                // another process is at it too.
                Err(Stop::Sql(error)) if is_busy(&error) && clock::now() < until => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(stop) => return Err(self.explain(stop, Phase::Connect)),
                Ok(opened) => {
                    self.opened = Some(opened);
                    return Ok(());
                }
            }
        }
    }

    /// Finds out whether the file has our tables, and changes nothing.
    fn look(&self) -> Result<(), StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_WRITE;
        let found =
            Connection::open_with_flags(&self.path, flags).map_err(Stop::Sql).and_then(|mut connection| {
                connection.busy_handler(Some(wait))?;
                schema::examine(&connection)
            });
        let path = self.path.display();
        match found.map_err(|stop| self.explain(stop, Phase::Connect))? {
            found if found.is_current() => Ok(()),
            Found::Ours(version) => Err(StoreError::misconfigured(format!(
                "Tenure's tables in `{path}` have version {version}, and this build reads version {}; they are \
                 upgraded when a node of this version starts (`tenure run` or `tenure node`)",
                schema::LATEST
            ))),
            Found::Empty | Found::Foreign => {
                Err(StoreError::not_set_up(format!("the database file `{path}` has none of Tenure's tables")))
            }
        }
    }

    /// Lets the connection go; the next request opens another.
    pub(crate) fn disconnect(&mut self) {
        self.opened = None;
    }

    /// The connection to the file that the path names now. A file that is gone is never created
    /// again: an empty one would have forgotten every term.
    pub(crate) fn current(&mut self) -> Result<&mut Opened, StoreError> {
        let now = self.file()?;
        if self.opened.as_ref().is_none_or(|opened| opened.file != now) {
            self.opened = None;
            let opened =
                open(&self.path, self.access, false).map_err(|stop| self.explain(stop, Phase::Work))?;
            return Ok(self.opened.insert(opened));
        }
        // Checked just above; `ok_or_else` keeps the borrow checker content without a panic.
        self.opened.as_mut().ok_or_else(|| StoreError::unavailable("the database is not open"))
    }

    fn file(&self) -> Result<FileId, StoreError> {
        place::file_id(&self.path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::unavailable(format!(
                "the database file `{}` is gone; put it back, or stop all nodes before starting a new one",
                self.path.display()
            )),
            _ => StoreError::unavailable(format!(
                "the database file `{}` cannot be seen: {error}",
                self.path.display()
            )),
        })
    }

    /// Runs verbs that may write, as one transaction with one commit. They say whether there is news.
    pub(crate) fn write(
        &mut self,
        verbs: impl FnOnce(&Connection, &Options) -> Result<bool, Stop>,
    ) -> Result<StoreIdentity, StoreError> {
        let Told { store, value: news } = self.run(TransactionBehavior::Immediate, verbs)?;
        self.contention.is_over();
        if news {
            news::signal(&self.path);
        }
        Ok(store)
    }

    /// Runs a verb that only reads, on one snapshot.
    pub(crate) fn read<T>(&mut self, verb: impl FnOnce(&Scope<'_>) -> Result<T, Stop>) -> Reply<T> {
        // The clock is read before the snapshot is taken, so that no age is overstated.
        let before = Moment::now();
        self.run(TransactionBehavior::Deferred, |snapshot, options| {
            verb(&Scope::new(snapshot, options, before))
        })
    }

    fn run<T>(
        &mut self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Connection, &Options) -> Result<T, Stop>,
    ) -> Reply<T> {
        let options = self.options.clone();
        let opened = self.current()?;
        let file = opened.file;
        let (phase, outcome) = transact(opened, behavior, |transaction| work(transaction, &options));
        let (store, value) = outcome.map_err(|stop| self.fail(stop, phase))?;
        // An answer counts only if it came from the file that everybody else sees.
        if self.file().ok() != Some(file) {
            return Err(StoreError::indeterminate(format!(
                "the database file `{}` was replaced under this request",
                self.path.display()
            )));
        }
        Ok(Told { store, value })
    }

    /// What is now true after a failure.
    ///
    /// A lock that was held by others says nothing against our connection. After any other error
    /// it is let go: a commit may be half done, a rollback may have failed, and what SQLite opened
    /// while the disk was read-only stays so for the life of the connection.
    pub(crate) fn fail(&mut self, stop: Stop, phase: Phase) -> StoreError {
        let suspect = matches!(&stop, Stop::Sql(error) if !is_busy(error));
        let stuck = self.opened.as_ref().is_some_and(|opened| !opened.connection.is_autocommit());
        if suspect || stuck || phase == Phase::Commit {
            self.disconnect();
        }
        self.explain(stop, phase)
    }

    fn explain(&self, stop: Stop, phase: Phase) -> StoreError {
        match stop {
            Stop::Sql(error) if is_busy(&error) => {
                let holder = Holder::find(&self.path);
                // Whoever has just named the file is told by the error itself.
                if phase != Phase::Connect {
                    self.contention.report(&self.path, holder.as_ref());
                }
                classify(&self.path, phase, error, holder.as_ref())
            }
            Stop::Sql(error) => classify(&self.path, phase, error, None),
            Stop::Told(error) => error,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(code(error), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The transaction itself; beside its outcome, how far it came.
fn transact<T>(
    opened: &mut Opened,
    behavior: TransactionBehavior,
    work: impl FnOnce(&Connection) -> Result<T, Stop>,
) -> (Phase, Result<(StoreIdentity, T), Stop>) {
    let before_commit = || {
        let transaction = opened.connection.transaction_with_behavior(behavior)?;
        let store = identity(&transaction, opened.file)?;
        let value = work(&transaction)?;
        Ok((transaction, (store, value)))
    };
    match before_commit() {
        Err(stop) => (Phase::Work, Err(stop)),
        Ok((transaction, answer)) => {
            (Phase::Commit, transaction.commit().map_err(Stop::Sql).map(|()| answer))
        }
    }
}

const IDENTITY: &str = "SELECT store FROM tenure_meta";

/// Which store this is: the history that the file tells, and the file that tells it.
fn identity(connection: &Connection, file: FileId) -> Result<StoreIdentity, rusqlite::Error> {
    let name: String = connection.prepare_cached(IDENTITY)?.query_row([], |row| row.get(0))?;
    Ok(StoreIdentity::of(&[name.as_bytes(), &file.device.to_be_bytes(), &file.inode.to_be_bytes()]))
}

fn open(path: &Path, access: Access, create: bool) -> Result<Opened, Stop> {
    let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags |= match access {
        Access::ReadWrite => OpenFlags::SQLITE_OPEN_READ_WRITE,
        Access::ReadOnly => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    if create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let mut connection = Connection::open_with_flags(path, flags)?;
    let file = named(path)?;
    connection.busy_handler(Some(wait))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    compile_once(&connection)?;
    match access {
        Access::ReadWrite => prepare_to_write(&mut connection)?,
        Access::ReadOnly if schema::examine(&connection)?.is_current() => {}
        Access::ReadOnly => {
            return Err(StoreError::unavailable("the tables in the database file are being set up").into());
        }
    }
    if named(path)? != file {
        return Err(StoreError::unavailable("the database file was replaced while it was opened").into());
    }
    Ok(Opened { connection, file })
}

/// Has statements compiled once. SQLite would compile many of them again whenever values are bound to them, to find a
/// plan that suits the values, which takes longer than to run them.
pub(crate) fn compile_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn prepare_to_write(connection: &mut Connection) -> Result<(), Stop> {
    // SQLite falls back to reading when it may not write, and would say so only at the first
    // renewal.
    if connection.is_readonly("main")? {
        return Err(Stop::Sql(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY),
            None,
        )));
    }
    let found = schema::examine(connection)?;
    durable(connection)?;
    if !found.is_current() {
        schema::migrate(connection)?;
    }
    // The write lock is held for as short as can be: what a renewal runs is compiled before it asks for the lock.
    for sql in verbs::RENEWAL.iter().chain([&IDENTITY]) {
        connection.prepare_cached(sql)?;
    }
    Ok(())
}

fn named(path: &Path) -> Result<FileId, Stop> {
    place::file_id(path)
        .map_err(|error| StoreError::unavailable(format!("the database file is gone: {error}")).into())
}

/// What makes a commit durable. Looked at first: the journal's mode is written into the file.
fn durable(connection: &Connection) -> Result<(), Stop> {
    let mode = |sql| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    if mode("PRAGMA journal_mode")? != "wal" && mode("PRAGMA journal_mode = WAL")? != "wal" {
        return Err(StoreError::misconfigured(
            "the database cannot keep a write-ahead log here; use a local disk with shared memory",
        )
        .into());
    }
    // A log that grew in a rush gives its room back.
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 16777216;",
    )?;
    let synchronous: i64 = connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
    if synchronous < 2 {
        return Err(StoreError::misconfigured(
            "this build of SQLite does not write through to the disk (`PRAGMA synchronous` stays below FULL)",
        )
        .into());
    }
    Ok(())
}
