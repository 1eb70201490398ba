//! Work that a program beside the node does: which partitions it may work on, and when it has stopped.
//!
//! The node takes work only while a program is there, and gives nothing away that the program was told of before the
//! program says that it has stopped. A program that does not say so costs the node its session, in the end: then it
//! is over for both at the deadline that the program was told.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure::{Held, Holding, Instant, Node, Partition, PartitionsError, TaskListName, TaskLists, Term};
use tenure_store::clock;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The worker that a node is, for programs of any language. Clones speak of the same.
#[derive(Clone, Debug)]
pub struct Worker {
    desk: Arc<Desk>,
    _tasks: Arc<Tasks>,
}

#[derive(Debug)]
struct Desk {
    node: Node,
    /// Whether a program is there, for each task list.
    attended: BTreeMap<TaskListName, watch::Sender<bool>>,
    shares: Mutex<BTreeMap<(TaskListName, u32), Share>>,
    /// Something of them has changed.
    changed: watch::Sender<()>,
}

/// A partition that this node owns.
#[derive(Debug)]
struct Share {
    /// Dropping it says that nobody works on the partition any more.
    partition: Partition,
    /// A program knows of it, and may work on it until then.
    told: Option<Instant>,
    revoked: bool,
}

/// What a program may know of a partition.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub list: TaskListName,
    pub number: u32,
    pub term: Term,
    pub revoked: bool,
    /// Until when the session is held, on the boot clock.
    pub until: Instant,
}

#[derive(Debug)]
struct Tasks(Vec<JoinHandle<()>>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// Why there is nothing to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFollowed {
    /// The node does not work on the task list.
    Unknown,
    /// Another program does.
    Attended,
}

/// Why nothing was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotReleased {
    /// This node does not own that, under that term.
    Unknown,
    /// Nobody has asked for it.
    NotRevoked,
}

impl Worker {
    /// Works on task lists as the leader of `election` divides them, whenever a program is there for them. One that
    /// is away for longer than `patience` is not expected back. It lives on the caller's Tokio runtime.
    ///
    /// # Errors
    /// [`PartitionsError`] if the store keeps no ledger, or there cannot be such an election.
    pub fn start(
        node: &Node,
        election: &str,
        lists: impl IntoIterator<Item = TaskListName>,
        patience: Duration,
    ) -> Result<Self, PartitionsError> {
        TaskLists::of(Arc::clone(node.store()), election)?;
        let attended: BTreeMap<_, _> =
            lists.into_iter().map(|list| (list, watch::Sender::new(false))).collect();
        let (shares, changed) = (Mutex::default(), watch::Sender::new(()));
        let desk = Arc::new(Desk { node: node.clone(), attended, shares, changed });
        let works = desk.attended.iter().map(|(list, attended)| {
            let (desk, attended) = (Arc::clone(&desk), attended.subscribe());
            tokio::spawn(work(desk, election.to_owned(), list.clone(), attended, patience))
        });
        let mut tasks: Vec<_> = works.collect();
        tasks.push(tokio::spawn(let_go_of_the_lapsed(Arc::clone(&desk))));
        Ok(Self { desk, _tasks: Arc::new(Tasks(tasks)) })
    }

    /// What this node owns, without telling anybody that it may be worked on.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let until = self.desk.node.held().now().until;
        self.desk.shares().iter().map(|(key, share)| share.row(key, until)).collect()
    }

    /// A program is there, and wants to know what it may work on.
    pub(crate) fn follow(&self, list: &TaskListName) -> Result<Following, NotFollowed> {
        let attended = self.desk.attended.get(list).ok_or(NotFollowed::Unknown)?;
        if attended.send_replace(true) {
            return Err(NotFollowed::Attended);
        }
        Ok(Following {
            desk: Arc::clone(&self.desk),
            list: list.clone(),
            seen: BTreeMap::new(),
            until: Instant::ZERO,
            news: VecDeque::new(),
            changes: self.desk.changed.subscribe(),
            holding: self.desk.node.held(),
        })
    }

    /// The program's work on a partition that was revoked has stopped.
    pub(crate) fn release(&self, list: &TaskListName, number: u32, term: Term) -> Result<(), NotReleased> {
        let mut shares = self.desk.shares();
        let key = (list.clone(), number);
        let share = shares.get(&key).filter(|share| share.partition.term() == term);
        let share = share.ok_or(NotReleased::Unknown)?;
        if !share.revoked {
            return Err(NotReleased::NotRevoked);
        }
        shares.remove(&key);
        drop(shares);
        self.desk.changed.send_replace(());
        Ok(())
    }
}

impl Desk {
    fn shares(&self) -> MutexGuard<'_, BTreeMap<(TaskListName, u32), Share>> {
        // What is guarded is whole after every statement.
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, partition: Partition) {
        let (key, term) = ((partition.task_list().clone(), partition.number()), partition.term());
        let (desk, lost, of) = (Arc::clone(self), partition.cancellation(), key.clone());
        self.shares().insert(key, Share { partition, told: None, revoked: false });
        self.changed.send_replace(());
        tokio::spawn(async move {
            lost.cancelled().await;
            desk.revoke(of, term);
        });
    }

    fn revoke(&self, key: (TaskListName, u32), term: Term) {
        let mut shares = self.shares();
        let Some(share) = shares.get_mut(&key).filter(|share| share.partition.term() == term) else { return };
        share.revoked = true;
        // Who was never told of it does not work on it.
        if share.told.is_none() {
            shares.remove(&key);
        }
        drop(shares);
        self.changed.send_replace(());
    }

    /// What a program is told from now on. It may work until the session's end; if that is over, nothing is new.
    fn tell(&self, list: &TaskListName, held: Held) -> Vec<Row> {
        let mut shares = self.shares();
        let ours = shares.iter_mut().filter(|((of, _), _)| of == list);
        let told = ours.filter_map(|(key, share)| {
            if held.session.is_some() {
                share.told = share.told.max(Some(held.until));
            }
            share.told.map(|_| share.row(key, held.until))
        });
        told.collect()
    }
}

impl Share {
    fn row(&self, (list, number): &(TaskListName, u32), until: Instant) -> Row {
        let (list, number, term) = (list.clone(), *number, self.partition.term());
        Row { list, number, term, revoked: self.revoked, until }
    }
}

/// Works on a task list while a program is there.
async fn work(
    desk: Arc<Desk>,
    election: String,
    list: TaskListName,
    mut attended: watch::Receiver<bool>,
    patience: Duration,
) {
    while attended.wait_for(|attended| *attended).await.is_ok() {
        // Names were checked, and nobody else of this node works on it.
        let Ok(mut partitions) = desk.node.partitions_of(&election, list.as_str()) else { return };
        loop {
            tokio::select! {
                partition = partitions.next() => match partition {
                    Some(partition) => desk.take(partition),
                    None => return,
                },
                () = gone(&mut attended, patience) => break,
            }
        }
    }
}

/// Waits until no program has been there for so long.
async fn gone(attended: &mut watch::Receiver<bool>, patience: Duration) {
    loop {
        if attended.wait_for(|attended| !attended).await.is_err() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(patience) => return,
            _ = attended.wait_for(|attended| *attended) => {}
        }
    }
}

/// Once the session is over, a program may work until the deadline that it was told, and no longer: nobody waits for
/// its word then, neither here nor elsewhere.
async fn let_go_of_the_lapsed(desk: Arc<Desk>) {
    let mut holding = desk.node.held();
    loop {
        let over = holding.now().session.is_none();
        let due = desk.shares().values().filter_map(|share| share.told).min().filter(|_| over);
        let due = async {
            match due {
                Some(at) => tokio::time::sleep(at.since(clock::now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {
                let now = clock::now();
                desk.shares().retain(|_, share| share.told.is_none_or(|told| told > now));
                desk.changed.send_replace(());
            }
            held = holding.changed() => if held.is_none() { return },
        }
    }
}

/// A program that is there, as long as this lives.
pub(crate) struct Following {
    desk: Arc<Desk>,
    list: TaskListName,
    /// What it was told of, under which term, and whether as revoked.
    seen: BTreeMap<u32, (Term, bool)>,
    until: Instant,
    news: VecDeque<News>,
    changes: watch::Receiver<()>,
    holding: Holding,
}

/// What a program is told.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// It may work on this.
    Assigned(Row),
    /// It shall stop, and say when it has.
    Revoked(Row),
    /// This is not this node's any more.
    Released(u32, Term),
    /// It may work until then.
    Renewed(Instant),
}

impl Following {
    /// The next word; `None` once the node has come to its end.
    pub(crate) async fn next(&mut self) -> Option<News> {
        loop {
            if let Some(news) = self.news.pop_front() {
                return Some(news);
            }
            self.look();
            if self.news.is_empty() {
                tokio::select! {
                    _ = self.changes.changed() => {}
                    held = self.holding.changed() => {
                        held?;
                    }
                }
            }
        }
    }

    pub(crate) fn list(&self) -> &TaskListName {
        &self.list
    }

    /// Compares what is with what was told.
    fn look(&mut self) {
        let held = self.holding.now();
        let mut before = std::mem::take(&mut self.seen);
        for row in self.desk.tell(&self.list, held) {
            let known = before.get(&row.number).copied().filter(|(term, _)| *term == row.term);
            if known.is_some() {
                before.remove(&row.number);
            }
            self.seen.insert(row.number, (row.term, row.revoked));
            match known {
                Some((_, true)) => {}
                Some((_, false)) | None if row.revoked => self.news.push_back(News::Revoked(row)),
                Some(_) => {}
                None => self.news.push_back(News::Assigned(row)),
            }
        }
        let gone = before.into_iter().map(|(number, (term, _))| News::Released(number, term));
        // First what is over, then what is new.
        gone.rev().for_each(|news| self.news.push_front(news));
        if held.session.is_some() && self.until != held.until {
            self.until = held.until;
            self.news.push_back(News::Renewed(held.until));
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(attended) = self.desk.attended.get(&self.list) {
            attended.send_replace(false);
        }
    }
}
