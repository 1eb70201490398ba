//! A thread that owns a connection, and takes one request after the other.

use std::thread;

use tenure_store::StoreError;
use tokio::sync::{mpsc, oneshot};

/// How many requests may wait. A node has a handful under way; whoever finds the queue full waits.
const QUEUE: usize = 64;

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Hands requests to a thread. The thread ends after its present request when this is dropped;
/// nobody waits for it, since it may be stuck in a disk that hangs.
pub(crate) struct Worker<S> {
    jobs: mpsc::Sender<Job<S>>,
}

impl<S: Send + 'static> Worker<S> {
    pub(crate) fn start(name: &str, mut owned: S) -> Result<Self, StoreError> {
        let (jobs, mut queue) = mpsc::channel::<Job<S>>(QUEUE);
        let run = move || {
            while let Some(job) = queue.blocking_recv() {
                job(&mut owned);
            }
        };
        spawn(name, run)?;
        Ok(Self { jobs })
    }

    /// Asks the thread, and waits for its answer.
    ///
    /// If the answer is no longer waited for when its turn comes, the request is not carried
    /// out; if it is dropped later, it is.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut S, &dyn Fn() -> bool) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job<S> = Box::new(move |owned| {
            if !reply.is_closed() {
                let value = request(owned, &|| !reply.is_closed());
                // Nobody waits any more: then nobody is told.
                let _ = reply.send(value);
            }
        });
        self.jobs.send(job).await.map_err(|_| StoreError::unavailable("the store's thread has died"))?;
        answer.await.map_err(|_| StoreError::indeterminate("the store's thread died over the request"))
    }
}

/// Does once what may block, on a thread of its own.
pub(crate) async fn apart<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (reply, answer) = oneshot::channel();
    // Nobody waits any more: then nobody is told.
    spawn(name, move || drop(reply.send(work())))?;
    answer.await.map_err(|_| StoreError::indeterminate("the store's thread died over the request"))?
}

pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(|error| StoreError::unavailable(format!("no thread could be started: {error}")))
}
