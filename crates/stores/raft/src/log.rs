//! The log and the vote, as openraft wants them: in memory to be read, on the disk to be kept.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::{Arc, RwLock};

use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader, StorageIOError};

use crate::disk::{Disk, Write};
use crate::types::{Entry, LogId, MemberId, StorageError, Types, Vote};

/// The log of one member. A clone reads the same log.
#[derive(Clone)]
pub(crate) struct Log {
    disk: Disk,
    kept: Arc<RwLock<Kept>>,
}

/// All that is on the disk, or will be in a moment: the log is short, since snapshots take its place.
struct Kept {
    entries: BTreeMap<u64, Entry>,
    purged: Option<LogId>,
    vote: Option<Vote>,
}

impl Log {
    pub(crate) fn new(disk: Disk, entries: Vec<Entry>, purged: Option<LogId>, vote: Option<Vote>) -> Self {
        let entries = entries.into_iter().map(|entry| (entry.log_id.index, entry)).collect();
        Self { disk, kept: Arc::new(RwLock::new(Kept { entries, purged, vote })) }
    }

    fn look<T>(&self, look: impl FnOnce(&Kept) -> T) -> T {
        look(&self.kept.read().expect("nobody panics over the log"))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Kept) -> T) -> T {
        change(&mut self.kept.write().expect("nobody panics over the log"))
    }
}

fn failed(error: &io::Error) -> StorageError {
    StorageIOError::<MemberId>::write_logs(error).into()
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, StorageError> {
        Ok(self.look(|kept| kept.entries.range(range).map(|(_, entry)| entry.clone()).collect()))
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        Ok(self.look(|kept| {
            let last = kept.entries.values().next_back().map(|entry| entry.log_id);
            LogState { last_purged_log_id: kept.purged, last_log_id: last.or(kept.purged) }
        }))
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), StorageError> {
        let written = self.disk.written(Write::Vote(*vote)).await;
        written.map_err(|error| StorageError::from(StorageIOError::<MemberId>::write_vote(&error)))?;
        self.change(|kept| kept.vote = Some(*vote));
        Ok(())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, StorageError> {
        Ok(self.look(|kept| kept.vote))
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        // They can be read from now on, and count once they are on the disk.
        self.change(|kept| {
            kept.entries.extend(entries.iter().map(|entry| (entry.log_id.index, entry.clone())));
        });
        self.disk.write(Write::Append(entries), move |result| callback.log_io_completed(result));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.disk.written(Write::Truncate(log_id.index)).await.map_err(|error| failed(&error))?;
        self.change(|kept| drop(kept.entries.split_off(&log_id.index)));
        Ok(())
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        self.disk.written(Write::Purge(log_id)).await.map_err(|error| failed(&error))?;
        self.change(|kept| {
            kept.entries = kept.entries.split_off(&(log_id.index + 1));
            kept.purged = Some(log_id);
        });
        Ok(())
    }
}
