//! The contract, verb by verb, handed to the owned thread.

use std::any::Any;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Transaction;
use tenure_core::{ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing};
use tenure_store::{
    Arranged, Arrangement, Candidate, Capabilities, Cause, Claim, Declaration, Deletion, Enlistment,
    EventQuery, EventRecord, ExpiryJudge, Finding, HealthReport, Hints, Leaf, Lease, Ledger, LedgerQuery,
    News, NodeRecord, Open, Options, Pending, Petitioned, Publication, Published, Release, Reply, Resign,
    Sessions, Store, StoreError, StoreUrl, Survey, TransactionError, UrlError,
};

use crate::database::Database;
use crate::error::Stop;
use crate::fence::{Ended, Fence};
use crate::news;
use crate::verbs::{self, Scope};
use crate::worker::{self, Worker};
use crate::writer::{Kind, Writer};

/// Sessions and leases in a SQLite file.
///
/// Any number of processes of one machine may use the file at once. Dropping the store ends its
/// threads; a future that is dropped leaves its request in an unknown state, and the store usable.
pub struct SqliteStore {
    /// What changes the file. Renewals go first.
    writer: Writer,
    /// What the protocol reads. It waits for no write.
    reads: Worker<Database>,
    /// What people and streams read of the history. It may be much, so that it has a thread of its own.
    history: Worker<Database>,
    fence: Worker<Fence>,
    /// `None` where the system cannot watch files.
    news: Option<news::News>,
    path: PathBuf,
}

impl SqliteStore {
    /// Connects to `sqlite:PATH`, and creates the file if there is none.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if the URL or the file cannot be used, with what to do; then
    /// the file is unchanged. [`StoreError::Unavailable`] if it is locked, or the disk is full.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        let path = path(url).map_err(StoreError::misconfigured)?;
        Self::open(path, url.options.clone()).await
    }

    /// Connects to the file at `path`, and creates it if there is none.
    ///
    /// # Errors
    /// As for [`SqliteStore::connect`].
    pub async fn open(path: impl AsRef<Path>, options: Options) -> Result<Self, StoreError> {
        let mut database = Database::new(path.as_ref().to_owned(), options);
        let connect = move || {
            database.connect()?;
            // Now, so that a first read does not meet a file that a newer build has changed since.
            let mut reads = database.reader();
            reads.current()?;
            let news = news::News::start(database.path(), database.namespace());
            Ok((database, reads, news))
        };
        let (database, reads, news) = worker::apart("tenure-sqlite", connect).await?;
        let path = database.path().to_owned();
        let news = news
            .inspect_err(|error| {
                let database = path.display();
                tracing::warn!(%database, %error, "changes cannot be watched; candidates have to look");
            })
            .ok();
        let reads = Worker::start("tenure-reads", reads)?;
        let history = Worker::start("tenure-history", database.reader())?;
        let fence = Worker::start("tenure-fence", Fence::new(database.another()))?;
        let writer = Writer::start(database)?;
        Ok(Self { writer, reads, history, fence, news, path })
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes to the application's own tables in this file, if and only if the lease is held.
    ///
    /// `work` runs in one `BEGIN IMMEDIATE` transaction, on a connection and a thread of its own.
    /// The lease is checked in that transaction before the work and before the commit, and
    /// `still` (the leader's own clock) with it. So what is committed was written by the leader
    /// of that term, and no successor can have been granted a term before the commit.
    ///
    /// While `work` runs, nobody else can write to the file, and no session can be renewed: keep it
    /// far below the renewal interval. It cannot end the transaction (savepoints are fine), nor
    /// change Tenure's tables. If it panics, the transaction is rolled back, and the panic goes
    /// on in the caller.
    ///
    /// # Errors
    /// [`TransactionError`]; all but its `Store` variant mean that nothing was written.
    ///
    /// # Cancel safety
    /// Dropped before `work` has ended: nothing is written. Dropped later: unknown.
    pub async fn transaction<T, E>(
        &self,
        lease: Lease,
        still: impl Fn() -> bool + Send + 'static,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, TransactionError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let outcome = self
            .fence
            .ask(move |fence, is_awaited| fence.run(&lease, &|| is_awaited() && still(), work))
            .await?;
        outcome.map_err(|ended| match ended {
            Ended::Error(error) => error,
            Ended::Panic(panic) => resume_unwind(panic),
        })
    }

    fn write<T: Send + 'static>(
        &self,
        verb: impl Fn(&Scope<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Pending<'_, Reply<T>> {
        Box::pin(self.writer.write(Kind::Other, verb))
    }

    /// Reads what the protocol acts on.
    fn look<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&Scope<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Pending<'_, Reply<T>> {
        Box::pin(async move { self.reads.ask(|database, _| database.read(verb)).await? })
    }

    /// Reads what people look at.
    fn browse<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&Scope<'_>) -> Result<T, Stop> + Send + 'static,
    ) -> Pending<'_, Reply<T>> {
        Box::pin(async move { self.history.ask(|database, _| database.read(verb)).await? })
    }
}

/// The path in a store URL.
fn path(url: &StoreUrl) -> Result<&str, UrlError> {
    let wrong = |problem: &str| {
        Err(UrlError::Rest { scheme: "sqlite", problem: problem.to_owned(), example: "sqlite:./tenure.db" })
    };
    url.only(&[])?;
    match url.rest.as_str() {
        "" => wrong("the path of the file is missing"),
        ":memory:" => wrong("a database in memory is seen by nobody else (the store `memory:` is for tests)"),
        rest if rest.starts_with("//") && !rest.starts_with("///") => {
            wrong("`//` would name a host, and the file is on this machine")
        }
        rest => Ok(rest),
    }
}

impl Store for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            expiry: ExpiryJudge::Candidate,
            news: if self.news.is_some() { News::Push } else { News::Poll },
            sessions: Sessions::Anywhere,
        }
    }

    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        self.write(move |scope| verbs::open(scope, &request))
    }

    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>> {
        let renew = move |scope: &Scope<'_>| verbs::renew(scope, session, sequence);
        Box::pin(self.writer.write(Kind::Renewal { attempt }, renew))
    }

    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>> {
        self.write(move |scope| verbs::claim(scope, &request))
    }

    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>> {
        self.write(move |scope| verbs::resign(scope, &request))
    }

    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>> {
        self.write(move |scope| verbs::close(scope, session, cause))
    }

    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        self.look(move |scope| verbs::read(scope, &election))
    }

    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        self.write(move |scope| verbs::delete(scope, &election, force))
    }

    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>> {
        self.write(move |scope| verbs::petition(scope, &election, to.as_ref()))
    }

    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>> {
        self.look(move |scope| verbs::candidates(scope, &election))
    }

    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        self.browse(verbs::elections)
    }

    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        self.look(verbs::nodes)
    }

    fn retire(&self, over: Stamp) -> Pending<'_, Reply<bool>> {
        self.write(move |scope| verbs::retire(scope, over))
    }

    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>> {
        self.write(move |scope| verbs::purge(scope, older_than))
    }

    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>> {
        self.write(move |scope| verbs::declare(scope, &declaration))
    }

    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>> {
        self.write(move |scope| verbs::report_health(scope, &report))
    }

    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>> {
        self.browse(move |scope| verbs::events(scope, &query))
    }

    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>> {
        let (path, told) = (self.path.clone(), self.news.is_some());
        self.look(move |scope| verbs::examine(scope, &path, told))
    }

    fn news(&self) -> Hints {
        match &self.news {
            Some(news) => news.subscribe(),
            // Ends at once: whoever listens has to look.
            None => Box::pin(futures_util::stream::empty()),
        }
    }

    fn ledger(&self) -> Option<&dyn Ledger> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Ledger for SqliteStore {
    fn survey(&self, election: ElectionName) -> Pending<'_, Reply<Survey>> {
        self.look(move |scope| verbs::survey(scope, &election))
    }

    fn leaf(&self, query: LedgerQuery) -> Pending<'_, Reply<Leaf>> {
        self.look(move |scope| verbs::leaf(scope, &query))
    }

    fn publish(&self, publication: Publication) -> Pending<'_, Reply<Published>> {
        self.write(move |scope| verbs::publish(scope, &publication))
    }

    fn acknowledge(&self, release: Release) -> Pending<'_, Reply<u64>> {
        self.write(move |scope| verbs::acknowledge(scope, &release))
    }

    fn enlist(&self, enlistment: Enlistment) -> Pending<'_, Reply<()>> {
        self.write(move |scope| verbs::enlist(scope, &enlistment))
    }

    fn arrange(&self, arrangement: Arrangement) -> Pending<'_, Reply<Arranged>> {
        self.write(move |scope| verbs::arrange(scope, &arrangement))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tenure_store::NodeInfo;
    use tenure_testkit::patience::HANG;

    use super::*;

    /// Occupies a worker until the sender is dropped.
    fn occupy<S: Send + 'static>(worker: &Worker<S>) -> (mpsc::Sender<()>, impl Future<Output = ()>) {
        let (release, occupied) = mpsc::channel::<()>();
        let asked = worker.ask(move |_, _| occupied.recv().is_err());
        (release, async move { assert!(asked.await.unwrap()) })
    }

    async fn store(dir: &tempfile::TempDir) -> SqliteStore {
        SqliteStore::open(dir.path().join("tenure.db"), Options::default()).await.unwrap()
    }

    async fn open(store: &SqliteStore) -> SessionId {
        let session = SessionId::from_u128(1);
        let open = Open {
            session,
            sequence: 1,
            ttl: Duration::from_secs(10),
            node: NodeInfo::new(NodeId::new("n1").unwrap(), "host"),
            supersedes: None,
            over: None,
        };
        store.open(open).await.unwrap();
        session
    }

    #[tokio::test]
    async fn nothing_that_a_node_reads_holds_up_its_renewal() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir).await;
        let session = open(&store).await;
        let (reads, first) = occupy(&store.reads);
        let (history, second) = occupy(&store.history);
        let (fence, third) = occupy(&store.fence);
        let occupied = async { tokio::join!(first, second, third) };
        let renewed = async {
            store.renew(session, 2, 1).await.unwrap();
            drop((reads, history, fence));
        };
        tokio::time::timeout(HANG, async { tokio::join!(occupied, renewed) }).await.unwrap();
    }

    #[tokio::test]
    async fn reads_are_answered_while_the_store_writes() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir).await;
        open(&store).await;
        let (release, occupied) = mpsc::channel::<()>();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let begun = std::cell::Cell::new(Some(begun));
        let writing = store.write(move |_| {
            begun.take().into_iter().for_each(|begun| begun.send(()).unwrap());
            Ok(occupied.recv().is_err())
        });
        let reading = async {
            begins.await.unwrap();
            let election = ElectionName::new("reports").unwrap();
            assert_eq!(store.read(election.clone()).await.unwrap().value, Record::default());
            assert!(store.candidates(election.clone()).await.unwrap().value.is_empty());
            assert!(store.elections().await.unwrap().value.is_empty());
            assert_eq!(store.nodes().await.unwrap().value.len(), 1);
            assert_eq!(store.events(EventQuery::default()).await.unwrap().value.len(), 1);
            assert!(
                store
                    .examine()
                    .await
                    .unwrap()
                    .value
                    .iter()
                    .all(|finding| finding.name != "schema" || finding.fine)
            );
            store.survey(election).await.unwrap();
            drop(release);
        };
        let (wrote, ()) = tokio::time::timeout(HANG, async { tokio::join!(writing, reading) }).await.unwrap();
        assert!(wrote.unwrap().value);
    }

    #[tokio::test]
    async fn whoever_reads_the_history_waits_for_other_readers_only() {
        let dir = tempfile::tempdir().unwrap();
        let store = store(&dir).await;
        let (reads, occupied) = occupy(&store.reads);
        let read = async {
            assert!(store.events(EventQuery::default()).await.unwrap().value.is_empty());
            assert!(store.elections().await.unwrap().value.is_empty());
            drop(reads);
        };
        tokio::time::timeout(HANG, async { tokio::join!(occupied, read) }).await.unwrap();
    }
}
