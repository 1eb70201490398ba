//! The state machine of one member, as openraft wants it; and what this member tells of it.

#![allow(clippy::result_large_err, reason = "openraft's errors are as large as they are")]

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use openraft::storage::RaftStateMachine;
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, StorageIOError};
use tenure_core::{Instant, Namespace};
use tenure_store::{Changes, Hint, Hints, Listeners, clock};

use crate::clock::Tick;
use crate::disk::{Disk, Write};
use crate::machine::Machine;
use crate::types::{Entry, LogId, MemberId, SnapshotMeta, StorageError, StoredMembership, Types};
use crate::verbs::{Outcome, Question};

/// The state of one member. A clone is the same state.
#[derive(Clone)]
pub(crate) struct State {
    disk: Disk,
    kept: Arc<Mutex<Kept>>,
    listeners: Arc<Mutex<BTreeMap<Namespace, Arc<Listeners>>>>,
    /// This life of this process, as the replicated clock knows it.
    writer: u128,
}

#[derive(Default)]
struct Kept {
    machine: Machine,
    applied: Option<LogId>,
    membership: StoredMembership,
    snapshot: Option<(SnapshotMeta, Vec<u8>)>,
    /// When the last command was applied here.
    heard: Option<Instant>,
}

impl State {
    /// The state of a snapshot; what the log has beyond it is applied again.
    pub(crate) fn new(
        disk: Disk,
        snapshot: Option<(SnapshotMeta, Vec<u8>)>,
        writer: u128,
    ) -> Result<Self, StorageError> {
        let mut kept = Kept::default();
        if let Some((meta, data)) = snapshot {
            kept.restore(meta, data)?;
        }
        Ok(Self { disk, kept: Arc::new(Mutex::new(kept)), listeners: Arc::default(), writer })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no transaction panics")
    }

    /// Now, on the replicated clock, as far as this member can tell.
    pub(crate) fn tick(&self) -> Tick {
        let kept = self.kept();
        let reading = clock::now();
        let heard = kept.heard.and_then(|at| Some((kept.machine.index()?, reading.since(at))));
        Tick { writer: self.writer, reading, heard }
    }

    /// Answers from what this member has applied.
    pub(crate) fn answer(&self, question: &Question, namespace: Namespace) -> Outcome {
        let tick = self.tick();
        self.kept().machine.answer(question, namespace, &tick, SystemTime::now())
    }

    /// The size of the last snapshot.
    pub(crate) fn snapshot_bytes(&self) -> u64 {
        self.kept().snapshot.as_ref().map_or(0, |(_, data)| data.len() as u64)
    }

    /// Hints of what this member applies from now on.
    pub(crate) fn subscribe(&self, namespace: &Namespace) -> Hints {
        let mut listeners = self.listeners.lock().expect("nobody panics over the listeners");
        listeners.entry(namespace.clone()).or_default().subscribe()
    }

    fn tell(&self, news: Vec<(Namespace, Changes)>) {
        let listeners = self.listeners.lock().expect("nobody panics over the listeners");
        for (namespace, news) in news {
            if let Some(listeners) = listeners.get(&namespace) {
                news.post(listeners);
            }
        }
    }
}

impl Kept {
    fn restore(&mut self, meta: SnapshotMeta, data: Vec<u8>) -> Result<(), StorageError> {
        self.machine = postcard::from_bytes(&data)
            .map_err(|error| StorageIOError::<MemberId>::read_snapshot(Some(meta.signature()), &error))?;
        self.applied = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        // It was written before it came here, so counting from now is counting slowly.
        self.heard = Some(clock::now());
        self.snapshot = Some((meta, data));
        Ok(())
    }

    fn meta(&self) -> SnapshotMeta {
        let last = self.applied.map_or(0, |log_id| log_id.index);
        SnapshotMeta {
            last_log_id: self.applied,
            last_membership: self.membership.clone(),
            snapshot_id: format!("{last}-{}", clock::now().as_nanos()),
        }
    }
}

fn failed(meta: &SnapshotMeta, error: &io::Error) -> StorageError {
    StorageIOError::<MemberId>::write_snapshot(Some(meta.signature()), error).into()
}

impl RaftStateMachine<Types> for State {
    type SnapshotBuilder = Self;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), StorageError> {
        let kept = self.kept();
        Ok((kept.applied, kept.membership.clone()))
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Vec<Outcome>>, StorageError>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let (mut outcomes, mut news) = (Vec::new(), Vec::new());
        {
            let mut kept = self.kept();
            for entry in entries {
                kept.applied = Some(entry.log_id);
                outcomes.push(match entry.payload {
                    EntryPayload::Blank => Vec::new(),
                    EntryPayload::Membership(membership) => {
                        kept.membership = StoredMembership::new(Some(entry.log_id), membership);
                        Vec::new()
                    }
                    EntryPayload::Normal(command) => {
                        let (outcomes, changed) = kept.machine.apply(command, entry.log_id.index);
                        news.extend(changed);
                        outcomes
                    }
                });
            }
            if !news.is_empty() {
                kept.heard = Some(clock::now());
            }
        }
        // After the lock is released: whoever is woken may ask at once.
        self.tell(news);
        Ok(outcomes)
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Vec<u8>>, StorageError> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        data: Box<Vec<u8>>,
    ) -> Result<(), StorageError> {
        let written = self.disk.written(Write::Snapshot(meta.clone(), data.to_vec())).await;
        written.map_err(|error| failed(meta, &error))?;
        self.kept().restore(meta.clone(), *data)?;
        for listeners in self.listeners.lock().expect("nobody panics over the listeners").values() {
            listeners.post(&Hint::All);
        }
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, StorageError> {
        let snapshot = self.kept().snapshot.clone();
        Ok(snapshot.map(|(meta, data)| Snapshot { meta, snapshot: Box::new(data) }))
    }
}

impl RaftSnapshotBuilder<Types> for State {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, StorageError> {
        let (meta, machine) = {
            let kept = self.kept();
            (kept.meta(), kept.machine.clone())
        };
        // Off the runtime: a large state takes a while, and heartbeats must not.
        let data = tokio::task::spawn_blocking(move || postcard::to_stdvec(&machine)).await;
        let data = data
            .map_err(io::Error::other)
            .and_then(|data| data.map_err(io::Error::other))
            .map_err(|error| failed(&meta, &error))?;
        let written = self.disk.written(Write::Snapshot(meta.clone(), data.clone())).await;
        written.map_err(|error| failed(&meta, &error))?;
        self.kept().snapshot = Some((meta.clone(), data.clone()));
        Ok(Snapshot { meta, snapshot: Box::new(data) })
    }
}
