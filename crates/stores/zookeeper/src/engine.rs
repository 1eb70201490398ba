//! A thread with a runtime of its own, so that an application that blocks every thread of its runtime cannot
//! keep a renewal from being answered. Verbs run on one, and every connection is driven on one: the driver
//! knows no other way to end a connection that looks for a server.

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::thread;

use tenure_store::StoreError;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Ends with everything on it when dropped.
pub(crate) struct Engine {
    handle: Handle,
    running: Mutex<Option<Running>>,
    over: watch::Receiver<()>,
}

/// Both end when this is dropped, in this order: whoever waits for something that is driven there must know
/// that it is over before it is.
struct Running {
    _told: watch::Sender<()>,
    _thread: oneshot::Sender<()>,
}

impl Engine {
    pub(crate) fn start(name: &str) -> Result<Self, StoreError> {
        let failed = |error| StoreError::unavailable(format!("no thread could be started: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (thread, ended) = oneshot::channel::<()>();
        let (told, over) = watch::channel(());
        let run = move || {
            // Only ever ends by the sender being dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        };
        thread::Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?;
        let running = Mutex::new(Some(Running { _told: told, _thread: thread }));
        Ok(Self { handle, running, over })
    }

    pub(crate) fn runs(&self) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Ends it now.
    pub(crate) fn stop(&self) {
        drop(self.running.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Waits for something that is driven there; nothing if it ends before.
    pub(crate) fn unless_over<F: Future>(
        &self,
        event: F,
    ) -> impl Future<Output = Option<F::Output>> + use<F> {
        let mut over = self.over.clone();
        async move {
            tokio::select! {
                biased;
                _ = over.changed() => None,
                happened = event => Some(happened),
            }
        }
    }

    /// Runs something there. Dropping the future cancels it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut task = Cancelled(self.handle.spawn(task));
        ended((&mut task.0).await)
    }

    /// Runs something there to its end, whether or not anybody waits for it.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        ended(self.handle.spawn(task).await)
    }

    /// Runs something there until the engine ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }
}

fn ended<T>(outcome: Result<Result<T, StoreError>, tokio::task::JoinError>) -> Result<T, StoreError> {
    outcome.unwrap_or_else(|_| Err(StoreError::indeterminate("the store's thread ended over the request")))
}

struct Cancelled<T>(JoinHandle<T>);

impl<T> Drop for Cancelled<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
