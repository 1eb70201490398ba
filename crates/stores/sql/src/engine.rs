//! A thread with a runtime of its own. Connections are driven there, so an application that blocks
//! every thread of its own runtime cannot keep a renewal from being answered.

use std::future::Future;
use std::thread;

use tenure_store::StoreError;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Ends with everything on it when dropped.
pub struct Engine {
    handle: Handle,
    _running: oneshot::Sender<()>,
}

impl Engine {
    /// Starts a thread of this name.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if the system has none to spare.
    pub fn start(name: &str) -> Result<Self, StoreError> {
        let failed = |error| StoreError::unavailable(format!("no thread could be started: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        let run = move || {
            // Only ever ends by the sender being dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        };
        thread::Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { handle, _running: running })
    }

    /// Runs something there. Dropping the future cancels it.
    ///
    /// # Errors
    /// Its own; [`StoreError::Indeterminate`] if the thread ends first.
    pub async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut task = Cancelled(self.handle.spawn(task));
        let ended = (&mut task.0).await;
        ended.unwrap_or_else(|_| Err(StoreError::indeterminate("the store's thread ended over the request")))
    }

    /// Runs something there until the engine ends.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }
}

struct Cancelled<T>(JoinHandle<T>);

impl<T> Drop for Cancelled<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
