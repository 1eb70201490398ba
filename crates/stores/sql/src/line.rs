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
pub(crate) struct Line<D: Database> {
    database: Arc<D>,
    connection: Mutex<Option<D::Connection>>,
    /// Names this line to the server.
    mark: String,
    left_behind: AtomicBool,
    /// Whether a claim was rehearsed on this connection.
    rehearsed: AtomicBool,
}

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
    pub(crate) fn new(database: Arc<D>) -> Self {
        static LINES: AtomicU64 = AtomicU64::new(0);
        let mark = format!(
            "line {:x}-{:x}-{}",
            clock::wall().as_nanos(),
            std::process::id(),
            LINES.fetch_add(1, Ordering::Relaxed)
        );
        let (left_behind, rehearsed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { database, connection: Mutex::new(None), mark, left_behind, rehearsed }
    }

    /// Has the next request open a fresh connection.
    pub(crate) async fn reset(&self) {
        *self.connection.lock().await = None;
    }

    async fn open(&self) -> Result<D::Connection, StoreError> {
        let mut connection = self.database.connect().await?;
        self.rehearsed.store(false, Ordering::Release);
        if self.left_behind.load(Ordering::Acquire) {
            self.database.cancel(&mut connection, &self.mark).await?;
            self.left_behind.store(false, Ordering::Release);
        }
        Ok(connection)
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
    pub(crate) async fn call(&self, function: &str, values: &[Value]) -> Result<String, StoreError> {
        let mut slot = self.connection.lock().await;
        let mut connection = match slot.take().filter(|connection| !D::is_closed(connection)) {
            Some(connection) => connection,
            None => self.open().await?,
        };
        let under_way = UnderWay(Some(&self.left_behind));
        let answer = self.database.call(&mut connection, &self.mark, function, values).await;
        under_way.answered();
        if answer.as_ref().map_or_else(|failure| failure.answered, |_| true) {
            *slot = Some(connection);
        }
        answer.map_err(|failure| failure.error)
    }
}
