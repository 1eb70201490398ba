//! A runtime of our own. The group's heartbeats and answers are made there, so an application that blocks
//! every thread of its own runtime cannot cost the group its leader.

use std::future::Future;

use tenure_store::StoreError;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Ends with everything on it when dropped.
pub(crate) struct Engine {
    runtime: Option<Runtime>,
}

impl Engine {
    pub(crate) fn start() -> Result<Self, StoreError> {
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("tenure-raft").enable_all().build();
        let runtime = runtime
            .map_err(|error| StoreError::unavailable(format!("no thread could be started: {error}")))?;
        Ok(Self { runtime: Some(runtime) })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until it is dropped")
    }

    /// Runs something there. Dropping the future cancels it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut task = Cancelled(self.runtime().spawn(task));
        let ended = (&mut task.0).await;
        ended.unwrap_or_else(|_| Err(StoreError::indeterminate("the store's runtime ended over the request")))
    }

    /// Runs something there until the engine ends.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(task);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waits for nothing, so it may be dropped anywhere.
            runtime.shutdown_background();
        }
    }
}

struct Cancelled<T>(JoinHandle<T>);

impl<T> Drop for Cancelled<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
