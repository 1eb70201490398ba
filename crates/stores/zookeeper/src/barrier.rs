//! The read barrier: after it, reads over the same connection are no older than now, whichever server answers.
//!
//! ZooKeeper answers a read from the memory of the server that is asked, which may be behind. `sync` does not mend
//! that. It makes a follower catch up with its leader; on a connection to the leader it waits for nothing, although a
//! follower may have answered a write that the leader has committed and not applied yet. And a server that was
//! deposed without noticing answers `sync` like any other. A transaction waits for both: a quorum has to accept it,
//! and the server that is asked answers it after everything that was committed before. So the barrier is a
//! transaction that changes nothing: a `multi` with one check.
//!
//! It costs a durable write, so it is used only where an old answer would be wrong. Whoever compares and sets what
//! it has read needs none.

use std::sync::atomic::{AtomicU64, Ordering};

use tenure_store::StoreError;
use tokio::sync::Mutex;
use zookeeper_client::{Client, MultiWriteError};

use crate::error::{Over, classify};

/// The barrier of one connection. At most one is under way; readers that come meanwhile share the next one.
pub(crate) struct ReadBarrier {
    /// Any znode that is always there.
    path: String,
    /// Counts the readers.
    asked: AtomicU64,
    /// The readers up to this one have had a barrier that was sent after they asked.
    passed: Mutex<u64>,
}

impl ReadBarrier {
    pub(crate) fn new(path: String) -> Self {
        Self { path, asked: AtomicU64::new(0), passed: Mutex::new(0) }
    }

    pub(crate) async fn pass(&self, client: &Client, over: Over) -> Result<(), StoreError> {
        self.share(async || {
            let mut check = client.new_multi_writer();
            check.add_check_version(&self.path, -1).map_err(|error| classify(&error, over))?;
            match check.commit().await {
                // Also one that is refused went through the quorum.
                Ok(_) | Err(MultiWriteError::OperationFailed { .. }) => Ok(()),
                Err(MultiWriteError::RequestFailed { source }) => Err(classify(&source, over)),
            }
        })
        .await
    }

    /// Cancel safe: when whoever sends is cancelled, or fails, the next who waits sends another one.
    async fn share(&self, send: impl AsyncFnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
        let reader = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        let mut passed = self.passed.lock().await;
        if *passed >= reader {
            return Ok(());
        }
        let covered = self.asked.load(Ordering::Acquire);
        send().await?;
        *passed = covered;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::future::{join, join_all};
    use futures_util::{FutureExt, pin_mut};
    use tokio::sync::Semaphore;

    use super::*;

    const READERS: usize = 100;

    #[tokio::test]
    async fn readers_that_come_while_a_barrier_is_under_way_share_the_next_one() {
        let (barrier, sent) = (ReadBarrier::new(String::from("/")), Cell::new(0));
        let answers = Semaphore::new(0);
        let read = || {
            barrier.share(async || {
                sent.set(sent.get() + 1);
                answers.acquire().await.expect("it is never closed").forget();
                Ok(())
            })
        };
        let all = join_all((0..READERS).map(|_| read()));
        pin_mut!(all);
        assert!((&mut all).now_or_never().is_none());
        assert_eq!(sent.get(), 1, "the first is under way, and everybody else has asked");
        answers.add_permits(READERS);
        assert!(all.await.iter().all(Result::is_ok));
        assert_eq!(sent.get(), 2);
        read().await.unwrap();
        assert_eq!(sent.get(), 3, "what was sent before a reader asked does not count for it");
    }

    #[tokio::test]
    async fn when_a_barrier_fails_or_is_cancelled_the_next_reader_sends_its_own() {
        let (barrier, sent) = (ReadBarrier::new(String::from("/")), Cell::new(0));
        let cancelled = barrier.share(std::future::pending);
        let failed = barrier.share(async || Err(StoreError::unavailable("gone")));
        let passed = barrier.share(async || {
            sent.set(sent.get() + 1);
            Ok(())
        });
        assert!(cancelled.now_or_never().is_none());
        let (failed, passed) = join(failed, passed).await;
        assert!(failed.is_err() && passed.is_ok());
        assert_eq!(sent.get(), 1);
    }
}
