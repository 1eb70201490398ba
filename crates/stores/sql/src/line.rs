//! One connection, opened again when it must be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tenure_store::{StoreError, clock};
use tokio::sync::Mutex;

use crate::database::{Database, Value};
use crate::engine::Engine;

/// A connection for one request at a time.
///
/// It is taken out while a request is under way, and put back only when that was answered: a request
/// that was given up takes its connection with it, since the next answer on it would not be ours. The
/// server may still be at it, so whoever comes next on this line cancels what was left behind.
pub struct Line<D: Database> {
    database: Arc<D>,
    /// How long a connection is kept that nobody uses; `None`: as long as it lasts.
    kept: Option<Duration>,
    slot: Mutex<Slot<D::Connection>>,
    /// Names this line to the server.
    mark: String,
    left_behind: AtomicBool,
    /// Whether a claim was rehearsed on this connection.
    rehearsed: AtomicBool,
}

struct Slot<C> {
    connection: Option<C>,
    /// How often it was used.
    uses: u64,
    /// Whether a task waits to close it when it is idle.
    has_closer: bool,
}

/// How long a connection that nobody uses is kept, unless it is the one that stays: longer than the pause between two
/// looks of a candidate with the default ttl.
const KEPT: Duration = Duration::from_secs(10);

/// How long a rehearsal may keep others from the line.
const REHEARSAL: Duration = Duration::from_secs(1);

/// A request under way: dropped before it was answered, it is left behind.
struct UnderWay<'a>(Option<&'a AtomicBool>);

impl UnderWay<'_> {
    fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(left_behind) = self.0 {
            left_behind.store(true, Ordering::Release);
        }
    }
}

impl<D: Database> Line<D> {
    /// One whose connection stays open.
    pub(crate) fn lasting(database: Arc<D>) -> Self {
        Self::new(database, None)
    }

    /// One whose connection is closed when nobody has used it for a while.
    pub(crate) fn passing(database: Arc<D>) -> Self {
        Self::new(database, Some(KEPT))
    }

    fn new(database: Arc<D>, kept: Option<Duration>) -> Self {
        static LINES: AtomicU64 = AtomicU64::new(0);
        let mark = format!(
            "line {:x}-{:x}-{}",
            clock::wall().as_nanos(),
            std::process::id(),
            LINES.fetch_add(1, Ordering::Relaxed)
        );
        let (left_behind, rehearsed) = (AtomicBool::new(false), AtomicBool::new(false));
        let slot = Mutex::new(Slot { connection: None, uses: 0, has_closer: false });
        Self { database, kept, slot, mark, left_behind, rehearsed }
    }

    /// Has calls made over this connection from now on.
    pub async fn adopt(&self, connection: D::Connection) {
        self.slot.lock().await.connection = Some(connection);
    }

    /// Has the next request open a fresh connection.
    pub(crate) async fn reset(&self) {
        self.slot.lock().await.connection = None;
    }

    async fn open(self: &Arc<Self>, slot: &mut Slot<D::Connection>) -> Result<D::Connection, StoreError> {
        let connection = self.database.connect().await?;
        self.rehearsed.store(false, Ordering::Release);
        if let Some(kept) = self.kept
            && !std::mem::replace(&mut slot.has_closer, true)
        {
            tokio::spawn(Arc::clone(self).close_when_idle(kept));
        }
        Ok(connection)
    }

    async fn close_when_idle(self: Arc<Self>, kept: Duration) {
        let mut before = None;
        loop {
            tokio::time::sleep(kept).await;
            let mut slot = self.slot.lock().await;
            if before == Some(slot.uses) {
                (slot.connection, slot.has_closer) = (None, false);
                return;
            }
            before = Some(slot.uses);
        }
    }

    /// Has a claim rehearsed, once per connection: for whoever waits, so that its grant is not the first one
    /// that the server makes on this connection. Nothing depends on it.
    pub(crate) fn rehearse(self: &Arc<Self>, engine: &Engine) {
        if D::REHEARSES && !self.rehearsed.swap(true, Ordering::AcqRel) {
            let line = Arc::clone(self);
            engine.spawn(async move {
                let rehearsal = line.call("rehearse", &[]);
                if let Ok(Err(error)) = tokio::time::timeout(REHEARSAL, rehearsal).await {
                    tracing::debug!(%error, "a claim was not rehearsed");
                }
            });
        }
    }

    /// Calls a function that answers with one JSON object.
    pub(crate) async fn call(
        self: &Arc<Self>,
        function: &str,
        values: &[Value],
    ) -> Result<String, StoreError> {
        let mut slot = self.slot.lock().await;
        let mut connection = match slot.connection.take().filter(|connection| !D::is_closed(connection)) {
            Some(connection) => connection,
            None => self.open(&mut slot).await?,
        };
        if self.left_behind.load(Ordering::Acquire) {
            self.database.cancel(&mut connection, &self.mark).await?;
            self.left_behind.store(false, Ordering::Release);
        }
        let under_way = UnderWay(Some(&self.left_behind));
        let answer = self.database.call(&mut connection, &self.mark, function, values).await;
        under_way.answered();
        slot.uses += 1;
        if answer.as_ref().map_or_else(|failure| failure.answered, |_| true) {
            slot.connection = Some(connection);
        }
        answer.map_err(|failure| failure.error)
    }
}
