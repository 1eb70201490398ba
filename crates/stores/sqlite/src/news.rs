//! News between processes: a byte written to a file beside the database.
//!
//! Why not watch the write-ahead log itself? Its write comes *before* the commit is visible, which
//! is a matter of shared memory: who is woken by it reads the old state, and goes back to sleep.
//! So a store that has committed a transition writes one byte to `<database>-news`, and whoever is
//! woken by that reads in the history what has happened. The byte means nothing.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use inotify::{EventMask, Inotify, WatchMask};
use rusqlite::{Connection, OpenFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, OFlags};
use tenure_store::{Changes, Hint, Hints, Listeners};

use crate::database::compile_once;
use crate::place::{FileId, file_id};
use crate::rows::{kind, optional_name};
use crate::worker;

/// How soon to try again when the signal file cannot be watched, and how often to make sure that the
/// watched one is still the one: a directory that was moved away tells nobody.
const RETRY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The file that is written to when there is news.
fn signal_path(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push("-news");
    PathBuf::from(path)
}

/// Opens the signal file, and creates it with the rights of the database.
fn open_signal(database: &Path) -> io::Result<OwnedFd> {
    let rights = std::fs::metadata(database)?.mode() & 0o666;
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(signal_path(database), flags, Mode::from_raw_mode(rights))?)
}

/// Wakes everybody who watches. News only shortens waits, so its loss is no failure.
pub(crate) fn signal(database: &Path) {
    let written = open_signal(database).and_then(|file| Ok(rustix::io::pwrite(file, b"!", 0)?));
    if let Err(error) = written {
        let database = database.display();
        tracing::warn!(%database, %error, "others are not told of a change, and will find it later");
    }
}

/// Listens for news on a thread of its own, until dropped.
pub(crate) struct News {
    listeners: Arc<Listeners>,
    wake: Arc<OwnedFd>,
}

impl News {
    /// Listens from now on.
    pub(crate) fn start(database: &Path, namespace: &str) -> io::Result<Self> {
        let listeners = Arc::new(Listeners::default());
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let mut reader = Reader::new(database, namespace);
        let watch = watch(database)?;
        // Reads where the history stands, so that what follows is news.
        let _ = reader.read().map_err(io::Error::other)?;
        let listener = Listener {
            reader,
            watch: Some(watch),
            listeners: Arc::clone(&listeners),
            wake: Arc::clone(&wake),
        };
        worker::spawn("tenure-news", move || listener.run()).map_err(io::Error::other)?;
        Ok(Self { listeners, wake })
    }

    pub(crate) fn subscribe(&self) -> Hints {
        self.listeners.subscribe()
    }
}

impl Drop for News {
    fn drop(&mut self) {
        // Cannot fail: the counter is far from its limit.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

/// A signal file that is watched.
struct Watch {
    inotify: Inotify,
    file: FileId,
}

fn watch(database: &Path) -> io::Result<Watch> {
    open_signal(database)?;
    let file = file_id(&signal_path(database))?;
    let inotify = Inotify::init()?;
    let mask = WatchMask::MODIFY | WatchMask::ATTRIB | WatchMask::DELETE_SELF | WatchMask::MOVE_SELF;
    inotify.watches().add(signal_path(database), mask)?;
    Ok(Watch { inotify, file })
}

struct Listener {
    reader: Reader,
    watch: Option<Watch>,
    listeners: Arc<Listeners>,
    wake: Arc<OwnedFd>,
}

/// What woke the listener.
enum Woken {
    Signal,
    /// The signal file is another one now, or its news may have been lost.
    Lost,
    Shutdown,
}

impl Listener {
    fn run(mut self) {
        loop {
            match self.wait() {
                Ok(Woken::Signal) => self.tell(),
                Ok(Woken::Lost) => self.rewatch(),
                Ok(Woken::Shutdown) => break,
                Err(error) => {
                    tracing::warn!(%error, "listening for news failed; changes are found by looking");
                    break;
                }
            }
        }
        self.listeners.close();
    }

    fn wait(&mut self) -> io::Result<Woken> {
        loop {
            let mut sources = vec![PollFd::new(&*self.wake, PollFlags::IN)];
            sources.extend(self.watch.as_ref().map(|watch| PollFd::new(&watch.inotify, PollFlags::IN)));
            match poll(&mut sources, Some(&RETRY)) {
                Ok(0) if self.sees_the_file() => continue,
                Ok(0) => return Ok(Woken::Lost),
                Ok(_) if !sources[0].revents().is_empty() => return Ok(Woken::Shutdown),
                Ok(_) => return self.heard(),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether the file that is watched is the one that others write to.
    fn sees_the_file(&self) -> bool {
        let named = file_id(&signal_path(&self.reader.database)).ok();
        self.watch.as_ref().is_some_and(|watch| Some(watch.file) == named)
    }

    fn heard(&mut self) -> io::Result<Woken> {
        let Some(watch) = &mut self.watch else { return Ok(Woken::Lost) };
        let mut buffer = [0; 4096];
        match watch.inotify.read_events(&mut buffer) {
            Ok(mut events) => Ok(match events.all(|event| event.mask == EventMask::MODIFY) {
                true => Woken::Signal,
                false => Woken::Lost,
            }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Woken::Signal),
            Err(error) => Err(error),
        }
    }

    /// Watches the file that now has the name, or tries again soon.
    fn rewatch(&mut self) {
        let lost_sight = self.watch.take().is_some();
        self.watch = watch(&self.reader.database).ok();
        // Once when sight is lost and once when it is back; not every second in between.
        if lost_sight || self.watch.is_some() {
            self.listeners.post(&Hint::All);
        }
    }

    fn tell(&mut self) {
        match self.reader.read() {
            Ok(changes) => changes.post(&self.listeners),
            Err(error) => {
                tracing::debug!(%error, "the news could not be read");
                self.listeners.post(&Hint::All);
            }
        }
    }
}

/// Reads in the history what is new, on a connection of its own.
struct Reader {
    database: PathBuf,
    namespace: String,
    opened: Option<(Connection, FileId)>,
    /// The newest event seen; `None` before the first look at this file.
    seen: Option<i64>,
}

/// Why nobody knows what is new.
#[derive(Debug, thiserror::Error)]
enum Blind {
    #[error("the history is another one than before")]
    Replaced,
    #[error("the database file cannot be seen: {0}")]
    Gone(#[from] io::Error),
    #[error("the history cannot be read: {0}")]
    Sql(#[from] rusqlite::Error),
}

impl Reader {
    fn new(database: &Path, namespace: &str) -> Self {
        Self { database: database.to_owned(), namespace: namespace.to_owned(), opened: None, seen: None }
    }

    fn read(&mut self) -> Result<Changes, Blind> {
        let file = file_id(&self.database)?;
        let replaced = self.opened.as_ref().is_some_and(|(_, opened)| *opened != file);
        if replaced {
            (self.opened, self.seen) = (None, None);
        }
        let (seen, namespace) = (self.seen, self.namespace.clone());
        let (connection, _) = self.opened(file)?;
        let snapshot = connection.unchecked_transaction()?;
        let newest: i64 = snapshot
            .prepare_cached("SELECT coalesce(max(id), 0) FROM tenure_events")?
            .query_row([], |row| row.get(0))?;
        let after = seen.unwrap_or(newest);
        let changes = changes(&snapshot, after, &namespace);
        drop(snapshot);
        self.seen = Some(newest);
        if replaced || newest < after {
            return Err(Blind::Replaced);
        }
        Ok(changes?)
    }

    fn opened(&mut self, file: FileId) -> Result<&(Connection, FileId), rusqlite::Error> {
        if self.opened.is_none() {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&self.database, flags)?;
            connection.busy_timeout(std::time::Duration::from_secs(1))?;
            compile_once(&connection)?;
            return Ok(self.opened.insert((connection, file)));
        }
        self.opened.as_ref().ok_or(rusqlite::Error::InvalidQuery)
    }
}

/// The plus has what is new be found by its id; an index of the namespace would go through the whole history.
const SINCE: &str =
    "SELECT kind, election, node FROM tenure_events WHERE id > ?1 AND +namespace = ?2 ORDER BY id";

/// What the events of a namespace tell that came after this one.
fn changes(snapshot: &Connection, after: i64, namespace: &str) -> rusqlite::Result<Changes> {
    let mut changes = Changes::default();
    let mut select = snapshot.prepare_cached(SINCE)?;
    let mut events = select.query((after, namespace))?;
    while let Some(event) = events.next()? {
        match optional_name(event, "election")? {
            Some(election) => {
                changes.note(kind(event)?, &election, optional_name(event, "node")?.as_ref());
            }
            None => changes.note_nodes(),
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;
    use tenure_store::{EventQuery, Limit, Options};

    use super::*;
    use crate::database::Database;
    use crate::moment::Moment;
    use crate::verbs::{self, Scope};

    #[test]
    fn whoever_reads_what_is_new_does_not_go_through_what_is_old() {
        let dir = tempfile::tempdir().unwrap();
        let mut database = Database::new(dir.path().join("tenure.db"), Options::default());
        database.connect().unwrap();
        let connection = &database.current().unwrap().connection;
        connection
            .execute_batch(
                "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000)
                 INSERT INTO tenure_events (namespace, election, sequence, time, kind, node, term, data)
                 SELECT 'default', 'e' || n, 1, '', 'leader_elected', 'n1', n, '{}' FROM numbers",
            )
            .unwrap();
        let cost = |sql: &str| connection.prepare_cached(sql).unwrap().get_status(StatementStatus::VmStep);

        let _ = changes(connection, 9_998, "default").unwrap();
        assert!((10..100).contains(&cost(SINCE)), "{} steps", cost(SINCE));

        let options = Options::default();
        let scope = Scope::new(connection, &options, Moment::now());
        for (sql, after, limit) in
            [(verbs::OLDEST_FIRST, 9_998, None), (verbs::NEWEST_FIRST, 0, Some(Limit::Newest(2)))]
        {
            let events = verbs::events(&scope, &EventQuery { after, limit, ..EventQuery::default() });
            assert_eq!(events.unwrap().iter().map(|event| event.id).collect::<Vec<_>>(), [9_999, 10_000]);
            assert!((10..200).contains(&cost(sql)), "{} steps", cost(sql));
        }
    }
}
