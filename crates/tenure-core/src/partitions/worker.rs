//! The worker's side: what this node owns, and how it gives up what is revoked.
//!
//! A worker hears of a change by a hint or with its next renewal, reads what the ledger has for its session, and
//! starts or stops its work. It acknowledges a revocation only once its work has stopped. When its session is
//! over, so is everything that it owned: the check fails at the session's deadline by itself.

use std::collections::{BTreeMap, VecDeque};

use super::asking::{Ask, Asking};
use super::assignment::Partition;
use super::ledger::{BATCH, Demand, Entry, Holding, Page, Revision, Told};
use super::pace::Drain;
use super::review::Review;
use crate::plants::{Plant, Planted};
use crate::record::{Renewed, SessionId};
use crate::request::Failure;
use crate::time::Instant;

/// What a worker tells its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// The partition is ours: work may start.
    Assigned {
        /// Which.
        partition: Partition,
        /// Its fencing token: higher than that of every owner before.
        revision: Revision,
    },
    /// Its work must stop; the driver says when it has.
    Stop {
        /// Which.
        partition: Partition,
        /// Until when it may take to finish. `None`: at once, the session is over.
        until: Option<Instant>,
    },
    /// It has not finished in time: its work is to be aborted.
    Abort {
        /// Which.
        partition: Partition,
    },
    /// Work does not stop although it was aborted. The session must not be renewed any more: when it has
    /// lapsed, others may have what this node owns.
    Surrender,
    /// The ledger went back in time: the store is not what it was.
    WentBack,
}

/// How far this node has got with a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Post {
    /// Owned, since this revision.
    Working { since: Revision },
    /// Revoked by this revision; its work may still run.
    Stopping { revoked: Revision, abort: Option<Instant>, surrender: Instant },
    /// Its session is over; its work may still run.
    Orphaned,
    /// Stopped, and to be acknowledged.
    Released { revoked: Revision },
}

/// One node's work on partitions, as a pure state machine.
#[derive(Debug)]
pub struct Worker {
    drain: Drain,
    planted: Planted,
    session: Option<SessionId>,
    /// Nothing is taken before: the store went back, and may have forgotten an owner that still works.
    wary_until: Instant,
    posts: BTreeMap<Partition, Post>,
    /// How far the ledger was read, and the highest revision of it that is known.
    cursor: Revision,
    revision: Revision,
    review: Review,
    /// How much of the word that was left for the session has been read.
    read: u64,
    /// How much of it is known to have been left.
    known: u64,
    /// How much of it was known when the question was asked that is on its way.
    known_reading: u64,
    known_acknowledging: u64,
    /// Something may have changed.
    stale: bool,
    serial: u64,
    reading: Asking,
    acknowledging: Asking,
    /// What the acknowledgement on its way is about.
    sent: Vec<(Partition, Revision)>,
    asks: VecDeque<Ask>,
    events: VecDeque<WorkerEvent>,
}

impl Worker {
    /// A worker without a session.
    #[must_use]
    pub fn new(drain: Drain) -> Self {
        Self {
            drain,
            planted: Planted::default(),
            session: None,
            wary_until: Instant::ZERO,
            posts: BTreeMap::new(),
            cursor: 0,
            revision: 0,
            review: Review::default(),
            read: 0,
            known: 0,
            known_reading: 0,
            known_acknowledging: 0,
            stale: false,
            serial: 0,
            reading: Asking::default(),
            acknowledging: Asking::default(),
            sent: Vec::new(),
            asks: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The same worker with a bug planted in it.
    #[must_use]
    pub fn planted(mut self, planted: Planted) -> Self {
        self.planted = planted;
        self
    }

    // ----- inputs ---------------------------------------------------------------------------

    /// A session was opened. The work of an earlier one must have stopped before. Until `wary_until` others may
    /// still work on what it is given ([`Machine::wary_until`](crate::Machine::wary_until)).
    pub fn opened(&mut self, session: SessionId, wary_until: Instant) {
        debug_assert!(self.is_idle() || self.planted.has(Plant::PartitionsReopenEarly));
        self.session = Some(session);
        self.wary_until = wary_until;
        (self.cursor, self.revision, self.read, self.known) = (0, 0, 0, 0);
        self.review = Review::default();
        self.stale = false;
        self.reading.forget();
        self.acknowledging.forget();
    }

    /// The session is over, or about to be closed: all work must stop at once.
    pub fn lost(&mut self) {
        self.session = None;
        self.asks.clear();
        if self.planted.has(Plant::PartitionsOutliveSession) {
            return;
        }
        self.posts.retain(|_, post| !matches!(post, Post::Released { .. }));
        for (partition, post) in &mut self.posts {
            if let Post::Working { .. } = post {
                self.events.push_back(WorkerEvent::Stop { partition: *partition, until: None });
            }
            *post = Post::Orphaned;
        }
    }

    /// What the renewals of the session have told; the same as last time is no news.
    pub fn renewed(&mut self, renewed: Renewed, now: Instant) {
        if self.session.is_none() || self.review.knows(renewed) {
            return;
        }
        let again = self.review.renewed(renewed, self.cursor, self.revision);
        if again || renewed.notices > self.read {
            self.hint(now);
        }
    }

    /// Something may have changed for this session.
    pub fn hint(&mut self, now: Instant) {
        self.stale = true;
        self.advance(now);
    }

    /// The work on a partition has stopped.
    pub fn stopped(&mut self, partition: Partition, now: Instant) {
        match self.posts.get(&partition) {
            Some(Post::Stopping { revoked, .. }) => {
                self.posts.insert(partition, Post::Released { revoked: *revoked });
            }
            Some(Post::Orphaned) => _ = self.posts.remove(&partition),
            Some(Post::Working { .. } | Post::Released { .. }) | None => {}
        }
        self.advance(now);
    }

    /// Takes the answer to a question. `session` is the one that the machine has open right now: what was asked
    /// under another starts no work any more, even if nobody has told this worker yet that it is over.
    pub fn reply(
        &mut self,
        serial: u64,
        outcome: Result<Told, Failure>,
        session: Option<SessionId>,
        now: Instant,
    ) {
        if self.session != session {
            self.lost();
        }
        if self.planted.has(Plant::PartitionStaleReadHeeded)
            && let Ok(Told::Read(page)) = &outcome
        {
            self.heed(page.clone(), now);
        }
        match outcome {
            Ok(Told::Read(page)) if self.reading.answered(serial).is_some() => self.heed(page, now),
            Ok(Told::Acknowledged { notices }) if self.acknowledging.answered(serial).is_some() => {
                self.acknowledged(notices);
            }
            Ok(_) => {}
            Err(_) => {
                if self.reading.failed(serial, self.drain.patience, now) {
                    self.stale = true;
                }
                self.acknowledging.failed(serial, self.drain.patience, now);
            }
        }
        self.advance(now);
    }

    /// Does whatever is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.escalate(now);
        self.advance(now);
    }

    // ----- outputs --------------------------------------------------------------------------

    /// The next question for the store.
    pub fn poll_ask(&mut self) -> Option<Ask> {
        self.asks.pop_front()
    }

    /// The next event for the driver.
    pub fn poll_event(&mut self) -> Option<WorkerEvent> {
        self.events.pop_front()
    }

    /// When [`Worker::handle_timeout`] wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let escalations = self.posts.values().filter_map(|post| match post {
            Post::Stopping { abort, surrender, .. } => Some(abort.unwrap_or(*surrender)),
            _ => None,
        });
        let from = |at: Instant, wanted: bool| (wanted && self.session.is_some()).then_some(at);
        let reading = self.reading.wake(from(self.wary_until, self.stale));
        let released = self.released().next().is_some();
        let acknowledging = self.acknowledging.wake(from(Instant::ZERO, released));
        escalations.chain(reading).chain(acknowledging).min()
    }

    /// The fencing token of a partition, if this node owns it right now. `deadline` is the session's own.
    #[must_use]
    pub fn check(&self, partition: Partition, deadline: Instant, now: Instant) -> Option<Revision> {
        match self.posts.get(&partition) {
            Some(Post::Working { since })
                if now < deadline || self.planted.has(Plant::PartitionDeadlineIgnored) =>
            {
                Some(*since)
            }
            _ => None,
        }
    }

    /// Whether no work runs, not even work that was told to stop.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.posts.values().all(|post| matches!(post, Post::Released { .. }))
    }

    /// How often word was left for the session, as far as this worker knows: for [`Machine::noticed`](crate::Machine::noticed).
    #[must_use]
    pub fn noticed(&self) -> u64 {
        self.known
    }

    // ----- parts ----------------------------------------------------------------------------

    fn acknowledged(&mut self, notices: u64) {
        if notices < self.known_acknowledging {
            self.events.push_back(WorkerEvent::WentBack);
            return;
        }
        self.known = self.known.max(notices);
        // What was released since is not in it, and is acknowledged next.
        for (partition, revoked) in std::mem::take(&mut self.sent) {
            if self.posts.get(&partition) == Some(&Post::Released { revoked }) {
                self.posts.remove(&partition);
                self.review.released(revoked);
            }
        }
    }

    fn heed(&mut self, page: Page, now: Instant) {
        let Some(session) = self.session else { return };
        let gullible = self.planted.has(Plant::PartitionStaleReadHeeded);
        let behind = page.revision < self.revision || page.notices < self.known_reading;
        let ours = page.entries.iter().filter(|entry| entry.holding.owner() == Some(session));
        if (behind || ours.clone().any(|entry| self.contradicts(entry))) && !gullible {
            self.events.push_back(WorkerEvent::WentBack);
            return;
        }
        for entry in ours {
            self.review.read(entry.partition);
            self.enter(entry, now);
        }
        let last = page.entries.last().map_or(page.revision, |entry| entry.revision);
        self.cursor = if page.more { last } else { page.revision };
        self.revision = page.revision;
        self.stale |= page.more;
        self.read = self.read.max(page.notices);
        self.known = self.known.max(page.notices);
        if !page.more && self.has_lost_something() {
            self.events.push_back(WorkerEvent::WentBack);
        }
    }

    /// As long as the session is live, nobody but this node can take from it what it works on: if the ledger
    /// says something else, it went back.
    fn contradicts(&self, entry: &Entry) -> bool {
        let revoked = matches!(entry.holding, Holding::Revoking(_));
        match self.posts.get(&entry.partition) {
            Some(Post::Working { since }) if revoked => entry.revision <= *since,
            Some(Post::Working { since }) => entry.revision != *since,
            Some(Post::Stopping { revoked: by, .. }) => !revoked || entry.revision != *by,
            Some(Post::Orphaned | Post::Released { .. }) | None => false,
        }
    }

    /// Whether the ledger was read again, and what this node works on was not in it.
    fn has_lost_something(&mut self) -> bool {
        let Some((from, found)) = self.review.end() else { return false };
        self.posts.iter().any(|(partition, post)| match post {
            Post::Working { since: revision } | Post::Stopping { revoked: revision, .. } => {
                *revision > from && !found.contains(partition)
            }
            Post::Orphaned | Post::Released { .. } => false,
        })
    }

    fn enter(&mut self, entry: &Entry, now: Instant) {
        let (partition, revision) = (entry.partition, entry.revision);
        let revoked = matches!(entry.holding, Holding::Revoking(_));
        let heeds = !self.planted.has(Plant::PartitionRevokeUnheeded);
        match self.posts.get(&partition).copied() {
            // Given and taken back before we knew: no work was started.
            None | Some(Post::Released { .. }) if revoked => {
                self.posts.insert(partition, Post::Released { revoked: revision });
            }
            // What we released was given to us again.
            None | Some(Post::Released { .. }) => {
                self.posts.insert(partition, Post::Working { since: revision });
                self.events.push_back(WorkerEvent::Assigned { partition, revision });
            }
            Some(Post::Working { .. }) if revoked && heeds => {
                let finish = now + self.drain.finish;
                let surrender = finish + self.drain.abort;
                let stopping = Post::Stopping { revoked: revision, abort: Some(finish), surrender };
                let early = self.planted.has(Plant::PartitionReleasedEarly);
                let post = if early { Post::Released { revoked: revision } } else { stopping };
                self.posts.insert(partition, post);
                self.events.push_back(WorkerEvent::Stop { partition, until: Some(finish) });
            }
            Some(Post::Working { .. } | Post::Stopping { .. } | Post::Orphaned) => {}
        }
    }

    /// First the work is given time to finish, then it is aborted, and at last the session is given up.
    fn escalate(&mut self, now: Instant) {
        for (partition, post) in &mut self.posts {
            let Post::Stopping { abort, surrender, .. } = post else { continue };
            if abort.is_some_and(|at| at <= now) {
                *abort = None;
                self.events.push_back(WorkerEvent::Abort { partition: *partition });
            }
            if abort.is_none() && *surrender <= now {
                *surrender = now + self.drain.abort;
                self.events.push_back(WorkerEvent::Surrender);
            }
        }
    }

    fn released(&self) -> impl Iterator<Item = (Partition, Revision)> + '_ {
        self.posts.iter().filter_map(|(partition, post)| match post {
            Post::Released { revoked } => Some((*partition, *revoked)),
            _ => None,
        })
    }

    fn advance(&mut self, now: Instant) {
        let patience = self.drain.patience;
        if self.reading.expire(patience, now) {
            self.stale = true;
        }
        self.acknowledging.expire(patience, now);
        let Some(session) = self.session else { return };
        if self.stale && now >= self.wary_until && self.reading.is_free(now) {
            self.stale = false;
            self.cursor = self.review.begin().unwrap_or(self.cursor);
            self.known_reading = self.known;
            self.serial += 1;
            let demand = Demand::Read { since: self.cursor, of: Some(session) };
            self.asks.push_back(self.reading.ask(self.serial, demand, patience, now));
        }
        if self.acknowledging.is_free(now) && self.released().next().is_some() {
            self.sent = self.released().take(BATCH).collect();
            self.known_acknowledging = self.known;
            self.serial += 1;
            let demand = Demand::Acknowledge { session, released: self.sent.clone() };
            self.asks.push_back(self.acknowledging.ask(self.serial, demand, patience, now));
        }
    }
}
