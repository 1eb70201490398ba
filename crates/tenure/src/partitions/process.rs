//! The usual form: one task per partition that this node owns, started again when it fails.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinSet;

use super::{Partition, Partitions};
use crate::error::Ending;

/// The pause after the first failure of a partition's work; twice as long after each that follows …
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// … up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Partitions {
    /// Runs `work` for every partition that this node owns, each as a task on the caller's runtime, until the node
    /// comes to its end; then it says why.
    ///
    /// When a partition is revoked, or the session is lost, its [`cancellation`](Partition::cancellation) token is
    /// cancelled at once; a task that has not ended by itself when its time is over is aborted at its next await
    /// point. Only then is the partition given to another node. Work that fails or panics is run again after a
    /// pause, as long as the partition is owned; work that returns is not.
    ///
    /// # Cancel safety
    /// Dropping the future aborts all tasks, and this node works on the task list no longer.
    pub async fn process_each<W, F, E>(mut self, work: W) -> Ending
    where
        W: Fn(Partition) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let work = Arc::new(work);
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                assigned = self.next() => match assigned {
                    Some(partition) => {
                        let task = tasks.spawn(supervise(partition.clone(), Arc::clone(&work)));
                        partition.employ(task);
                    }
                    None => break,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
        while tasks.join_next().await.is_some() {}
        self.link.status.ending()
    }
}

async fn supervise<W, F, E>(partition: Partition, work: Arc<W>)
where
    W: Fn(Partition) -> F,
    F: Future<Output = Result<(), E>>,
    E: Display,
{
    let mut pause = FIRST_PAUSE;
    loop {
        // Whatever it panicked over is gone with it: each run begins with nothing but its partition.
        let run = AssertUnwindSafe(async { work(partition.clone()).await });
        let failure = match run.catch_unwind().await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => String::from("it panicked"),
        };
        // Work that fails because its partition was taken away has not failed.
        if partition.check().is_err() {
            return;
        }
        tracing::warn!(
            target: "tenure", task_list = %partition.task_list(), partition = partition.number(), failure,
            ?pause, "the work on a partition failed, and is run again",
        );
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = partition.revoked() => return,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
