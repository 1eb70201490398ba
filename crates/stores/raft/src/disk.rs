//! What a member keeps in its directory: who it is, its vote, its log, a snapshot. Every write is on the disk
//! (fdatasync) before anybody is told of it.
//!
//! All writes go through one thread, in order, and those that wait meanwhile share one commit. Nothing is read
//! while the member runs: what the disk has is in memory too.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenure_store::StoreError;
use tokio::sync::oneshot;

use crate::types::{Entry, LogId, MemberId, SnapshotMeta, Vote};

const FILE: &str = "raft.redb";
/// Counts the commits, beside the database: see [`Tally`].
const TALLY: &str = "raft.tally";
/// Changes when what is written here changes its shape.
const FORMAT: u32 = 5;

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const FACTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("facts");

/// Who a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub id: MemberId,
    /// The group that it belongs to, once it belongs to one.
    pub group: Option<u128>,
}

/// What was found in a directory.
#[derive(Debug)]
pub(crate) struct Found {
    pub identity: Identity,
    pub vote: Option<Vote>,
    pub purged: Option<LogId>,
    pub log: Vec<Entry>,
    pub snapshot: Option<(SnapshotMeta, Vec<u8>)>,
}

/// A change of what is kept.
pub(crate) enum Write {
    Identity(Identity),
    Vote(Vote),
    Append(Vec<Entry>),
    /// Drops this entry and all after it.
    Truncate(u64),
    /// Drops this entry and all before it.
    Purge(LogId),
    Snapshot(SnapshotMeta, Vec<u8>),
}

/// Called when a write is on the disk, or is not.
type Done = Box<dyn FnOnce(Result<(), io::Error>) + Send>;

/// The way to the writing thread. When the last one is dropped, the directory is free again.
#[derive(Clone)]
pub(crate) struct Disk {
    writes: mpsc::Sender<(Write, Done)>,
}

impl Disk {
    /// Opens a directory, or makes it that of a new member.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if somebody else uses it, or if it is damaged: a member that has
    /// forgotten something that it once confirmed must not vote.
    pub(crate) fn open(directory: &Path) -> Result<(Self, Found), StoreError> {
        let unusable = |problem: &dyn std::fmt::Display| {
            StoreError::misconfigured(format!(
                "the data directory {} cannot be used: {problem}",
                directory.display()
            ))
        };
        fs::create_dir_all(directory).map_err(|error| unusable(&error))?;
        let path = directory.join(FILE);
        let mut database = Database::create(&path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => {
                unusable(&"another process uses it; every member needs one of its own")
            }
            error => damaged(directory, &error),
        })?;
        match database.check_integrity() {
            Ok(true) => {}
            Ok(false) => return Err(damaged(directory, &"its checksums do not match")),
            Err(error) => return Err(damaged(directory, &error)),
        }
        let mut tally = Tally::open(directory).map_err(|error| unusable(&error))?;
        let commits = commits(&database).map_err(|error| damaged(directory, &error))?;
        if tally.read().map_err(|error| unusable(&error))? > commits {
            return Err(damaged(directory, &"its last writes are gone"));
        }
        tally.commits = commits;
        let found = match find(&database).map_err(|error| damaged(directory, &error))? {
            Some(found) => found,
            None => begin(&database, &mut tally).map_err(|error| unusable(&error))?,
        };
        // The names of new files are on the disk only once the directory is.
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(|error| unusable(&error))?;
        let (writes, queue) = mpsc::channel();
        let write = move || write_all(&database, &mut tally, &queue);
        thread::Builder::new()
            .name(String::from("tenure-disk"))
            .spawn(write)
            .map_err(|error| unusable(&error))?;
        Ok((Self { writes }, found))
    }

    /// Writes, and calls back when it is done.
    pub(crate) fn write(&self, write: Write, done: impl FnOnce(Result<(), io::Error>) + Send + 'static) {
        if let Err(mpsc::SendError((_, done))) = self.writes.send((write, Box::new(done))) {
            done(Err(io::Error::other("the disk's thread has ended")));
        }
    }

    /// Writes, and waits for it.
    pub(crate) async fn written(&self, write: Write) -> Result<(), io::Error> {
        let (tell, told) = oneshot::channel();
        // Whoever does not wait any more need not be told.
        self.write(write, move |result| drop(tell.send(result)));
        told.await.unwrap_or_else(|_| Err(io::Error::other("the disk's thread has ended")))
    }
}

fn damaged(directory: &Path, problem: &dyn std::fmt::Display) -> StoreError {
    StoreError::misconfigured(format!(
        "the member's data in {} is damaged ({problem}), so it may have forgotten what it promised, and must not vote; \
         move the directory away and start again: the member comes back under a new identity, and takes its old place",
        directory.display()
    ))
}

/// How many commits the database was told to make, in a file of its own.
///
/// After a crash, redb takes the newest commit whose checksums are right. If the end of its file was damaged,
/// that is an older one than was confirmed, and nobody would notice. This number would be ahead of it then. It
/// is written without waiting for the disk: when it is behind, nothing is wrong.
struct Tally {
    file: File,
    commits: u64,
}

impl Tally {
    fn open(directory: &Path) -> io::Result<Self> {
        let path: PathBuf = directory.join(TALLY);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { file, commits: 0 })
    }

    fn read(&self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(u64::from_le_bytes(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn write(&self) -> io::Result<()> {
        self.file.write_all_at(&self.commits.to_le_bytes(), 0)
    }
}

fn write_all(database: &Database, tally: &mut Tally, queue: &mpsc::Receiver<(Write, Done)>) {
    while let Ok(first) = queue.recv() {
        let (writes, done): (Vec<_>, Vec<_>) = std::iter::once(first).chain(queue.try_iter()).unzip();
        let result = commit(database, tally, writes);
        for done in done {
            done(match &result {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::other(error.to_string())),
            });
        }
    }
}

fn commit(database: &Database, tally: &mut Tally, writes: Vec<Write>) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    for write in writes {
        apply(&transaction, write)?;
    }
    fact(&transaction, "commits", &(tally.commits + 1))?;
    transaction.commit()?;
    tally.commits += 1;
    tally.write().map_err(redb::Error::Io)
}

fn apply(transaction: &WriteTransaction, write: Write) -> Result<(), redb::Error> {
    match write {
        Write::Identity(identity) => fact(transaction, "identity", &identity),
        Write::Vote(vote) => fact(transaction, "vote", &vote),
        Write::Append(entries) => {
            let mut log = transaction.open_table(LOG)?;
            for entry in entries {
                log.insert(entry.log_id.index, bytes(&entry)?.as_slice())?;
            }
            Ok(())
        }
        Write::Truncate(from) => Ok(transaction.open_table(LOG)?.retain_in(from.., |_, _| false)?),
        Write::Purge(last) => {
            transaction.open_table(LOG)?.retain_in(..=last.index, |_, _| false)?;
            fact(transaction, "purged", &last)
        }
        Write::Snapshot(meta, data) => fact(transaction, "snapshot", &(meta, data)),
    }
}

fn fact(transaction: &WriteTransaction, name: &str, value: &impl Serialize) -> Result<(), redb::Error> {
    transaction.open_table(FACTS)?.insert(name, bytes(value)?.as_slice())?;
    Ok(())
}

fn bytes(value: &impl Serialize) -> Result<Vec<u8>, redb::Error> {
    postcard::to_stdvec(value).map_err(|error| redb::Error::Io(io::Error::other(error)))
}

fn value<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, redb::Error> {
    postcard::from_bytes(bytes).map_err(|error| redb::Error::Corrupted(error.to_string()))
}

/// Makes the directory that of a new member.
fn begin(database: &Database, tally: &mut Tally) -> Result<Found, redb::Error> {
    let random = getrandom::u64().map_err(|error| redb::Error::Io(io::Error::other(error.to_string())))?;
    // Zero means nobody.
    let identity = Identity { id: random.max(1), group: None };
    let transaction = database.begin_write()?;
    transaction.open_table(LOG)?;
    fact(&transaction, "format", &FORMAT)?;
    transaction.commit()?;
    commit(database, tally, vec![Write::Identity(identity)])?;
    Ok(Found { identity, vote: None, purged: None, log: Vec::new(), snapshot: None })
}

fn commits(database: &Database) -> Result<u64, redb::Error> {
    read_fact(database, "commits").map(Option::unwrap_or_default)
}

fn read_fact<T: DeserializeOwned>(database: &Database, name: &str) -> Result<Option<T>, redb::Error> {
    let facts = match database.begin_read()?.open_table(FACTS) {
        Ok(facts) => facts,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    facts.get(name)?.map(|bytes| value(bytes.value())).transpose()
}

/// `None` if nobody has been here.
fn find(database: &Database) -> Result<Option<Found>, redb::Error> {
    let Some(identity) = read_fact(database, "identity")? else { return Ok(None) };
    let format: u32 = read_fact(database, "format")?.unwrap_or_default();
    if format != FORMAT {
        let problem = format!("written in format {format}, and this version of Tenure knows only {FORMAT}");
        return Err(redb::Error::Corrupted(problem));
    }
    let purged: Option<LogId> = read_fact(database, "purged")?;
    let mut log: Vec<Entry> = Vec::new();
    let mut next = purged.map(|last| last.index + 1);
    for row in database.begin_read()?.open_table(LOG)?.iter()? {
        let (index, bytes) = row?;
        let entry: Entry = value(bytes.value())?;
        if next.is_some_and(|next| next != index.value()) || entry.log_id.index != index.value() {
            return Err(redb::Error::Corrupted(format!("entry {} is not where it should be", index.value())));
        }
        next = Some(index.value() + 1);
        log.push(entry);
    }
    let (vote, snapshot) = (read_fact(database, "vote")?, read_fact(database, "snapshot")?);
    Ok(Some(Found { identity, vote, purged, log, snapshot }))
}
