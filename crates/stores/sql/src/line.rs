//! One connection, opened again when it must be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tenure_store::{StoreError, clock};
use tokio::sync::{Mutex, MutexGuard, oneshot};

use crate::database::{Database, Value};

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
    /// Whether [`rehearse`](Line::rehearse) was called on this connection.
    rehearsed: AtomicBool,
}

struct Slot<C> {
    connection: Option<C>,
    /// How often it was used.
    uses: u64,
    /// Whether a task waits to close it when it is idle.
    has_closer: bool,
}

/// How long a connection that nobody uses is kept, unless it is the one that stays.
const KEPT: Duration = Duration::from_secs(10);

/// How long a request may use a connection that others want to use: then that is closed.
const HELD: Duration = Duration::from_secs(5);

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
        self.rehearsed.store(false, Ordering::Release);
    }

    /// Has the next request open a fresh connection, which it does anyway while this one is in use.
    pub(crate) fn reset(&self) {
        if let Ok(mut slot) = self.slot.try_lock() {
            slot.connection = None;
        }
    }

    async fn open(self: &Arc<Self>, slot: &mut Slot<D::Connection>) -> Result<D::Connection, StoreError> {
        let connection = self.database.connect().await?;
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

    /// Calls a function that answers with one JSON object.
    pub(crate) async fn call(
        self: &Arc<Self>,
        function: &str,
        values: &[Value],
    ) -> Result<String, StoreError> {
        let mut slot = self.slot.lock().await;
        self.call_in(&mut slot, function, values).await
    }

    /// The same, at once: while the connection is in use, over one that is opened for this request alone.
    pub(crate) async fn call_at_once(
        self: &Arc<Self>,
        function: &str,
        values: &[Value],
    ) -> Result<String, StoreError> {
        if let Ok(mut slot) = self.slot.try_lock() {
            return self.call_in(&mut slot, function, values).await;
        }
        match self.database.connect().await {
            Ok(connection) => self.call_over(connection, function, values).await.1,
            // The server may have none to spare.
            Err(error) => {
                tracing::debug!(%error, "a request waits for a connection that is in use");
                self.call(function, values).await
            }
        }
    }

    /// The same over the connection if it is open and not in use; else it answers `None`. It is finished even if nobody
    /// waits for the answer any more: so nobody loses the connection over it.
    pub(crate) async fn call_if_idle(
        self: Arc<Self>,
        function: &'static str,
        values: Arc<Vec<Value>>,
        answered: oneshot::Sender<Option<Result<String, StoreError>>>,
    ) {
        let is_ready = |slot: &MutexGuard<'_, Slot<D::Connection>>| {
            slot.connection.as_ref().is_some_and(|connection| !D::is_closed(connection))
                && !self.left_behind.load(Ordering::Acquire)
        };
        let Some(mut slot) = self.slot.try_lock().ok().filter(is_ready) else {
            let _ = answered.send(None);
            return;
        };
        let finished = tokio::time::timeout(HELD, async {
            let answer = self.call_in(&mut slot, function, &values).await;
            let _ = answered.send(Some(answer));
            if let Some(connection) = &mut slot.connection {
                self.database.settle(connection).await;
            }
        });
        if finished.await.is_err() {
            slot.connection = None;
        }
    }

    /// Calls the function `rehearse` once per connection, if it is idle. Nothing depends on it.
    pub(crate) async fn rehearse(self: Arc<Self>) {
        if D::REHEARSES && !self.rehearsed.swap(true, Ordering::AcqRel) {
            let (answered, answer) = oneshot::channel();
            Arc::clone(&self).call_if_idle("rehearse", Arc::default(), answered).await;
            match answer.await {
                Ok(Some(Ok(_))) => {}
                Ok(None) => self.rehearsed.store(false, Ordering::Release),
                failed => tracing::debug!(?failed, "a hand-over was not rehearsed"),
            }
        }
    }

    async fn call_in(
        self: &Arc<Self>,
        slot: &mut Slot<D::Connection>,
        function: &str,
        values: &[Value],
    ) -> Result<String, StoreError> {
        let connection = match slot.connection.take().filter(|connection| !D::is_closed(connection)) {
            Some(connection) => connection,
            None => {
                self.rehearsed.store(false, Ordering::Release);
                self.open(slot).await?
            }
        };
        let (connection, answer) = self.call_over(connection, function, values).await;
        slot.uses += 1;
        slot.connection = connection;
        answer
    }

    /// Gives the connection back if it can be used for the next call.
    async fn call_over(
        &self,
        mut connection: D::Connection,
        function: &str,
        values: &[Value],
    ) -> (Option<D::Connection>, Result<String, StoreError>) {
        if self.left_behind.load(Ordering::Acquire) {
            if let Err(error) = self.database.cancel(&mut connection, &self.mark).await {
                return (None, Err(error));
            }
            self.left_behind.store(false, Ordering::Release);
        }
        let under_way = UnderWay(Some(&self.left_behind));
        let answer = self.database.call(&mut connection, &self.mark, function, values).await;
        under_way.answered();
        match answer {
            Ok(answer) => (Some(connection), Ok(answer)),
            Err(failure) => (failure.answered.then_some(connection), Err(failure.error)),
        }
    }
}
