//! The coordinator's side: plans, and carries the plan out without ever giving a partition two owners.
//!
//! ```text
//! vacant ──assign──▶ owned ──revoke──▶ revoking ──acknowledged──▶ vacant
//!                      │                  │
//!                      └── session over ──┴──▶ as good as vacant
//! ```
//!
//! A coordinator lives for one term. Its first act is to load the ledger, its second to look who is there; only
//! then does it plan. It asks one question at a time. What it writes names the revision that it saw of
//! each entry and its own term, so whatever it does not know, the store refuses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::asking::{Ask, Asking};
use super::assignment::{Assignment, Partition};
use super::book::Book;
use super::ledger::{Change, Demand, Entry, Holding, Revision, Sighting, Told};
use super::member::Member;
use super::pace::Pace;
use super::plan::plan;
use super::roster::{NodeIndex, Roster};
use super::tasks::TaskList;
use crate::name::NodeId;
use crate::plants::{Plant, Planted};
use crate::record::{Renewed, SessionId};
use crate::request::Failure;
use crate::term::Term;
use crate::time::{Drift, Instant};

/// A task list as it was declared, with nodes by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// What is asked. Its `excluded` and `pins` are not used here: a coordinator knows the indices.
    pub tasks: TaskList,
    /// Nodes that own nothing of it.
    pub excluded: Vec<NodeId>,
    /// Partitions that belong to a node as long as it is there.
    pub pins: Vec<(u32, NodeId)>,
}

impl From<TaskList> for Declared {
    fn from(tasks: TaskList) -> Self {
        Self { tasks, excluded: Vec::new(), pins: Vec::new() }
    }
}

/// What a coordinator tells its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoordinatorEvent {
    /// The ledger is loaded, and it was seen who is there.
    Ready,
    /// There is a new plan.
    Planned {
        /// How many partitions change hands.
        moves: usize,
    },
    /// All that was planned is done, as far as it can be.
    CarriedOut {
        /// Since the first publication of it.
        took: Duration,
    },
    /// An owner takes longer to drain than it should. It escalates by itself; this is for people to know.
    Overdue {
        /// What it is to give up.
        partition: Partition,
    },
    /// The store says that the term is over.
    TermOver,
    /// The ledger went back in time: the store is not what it was.
    WentBack,
}

/// What a coordinator is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Loads the ledger.
    Loading,
    /// Looks who is there, for the first time since.
    Looking,
    /// Plans, and carries out.
    Ready,
    /// Its term is over, or nothing can be believed any more.
    Over,
}

/// The coordinator of one term, as a pure state machine.
#[derive(Debug)]
pub struct Coordinator {
    session: SessionId,
    term: Term,
    pace: Pace,
    planted: Planted,
    phase: Phase,
    declared: Vec<Declared>,
    book: Book,
    roster: Roster,
    /// Who shall own what, by places in the roster.
    target: Assignment,
    /// Who was there when that was planned.
    members: Vec<Member>,
    /// Something that plans depend on has changed.
    replan: bool,
    /// Something is to be written, perhaps.
    pending: bool,
    /// The ledger may have changed.
    stale: bool,
    survey_at: Instant,
    /// Since when each revocation has been known.
    revoking: BTreeMap<Partition, (Instant, bool)>,
    serial: u64,
    asking: Asking,
    /// What the publication on its way changes.
    sent: Vec<Change>,
    /// Since when a plan has been carried out, if it is not done yet.
    began: Option<Instant>,
    asks: VecDeque<Ask>,
    events: VecDeque<CoordinatorEvent>,
}

impl Coordinator {
    /// A coordinator that was just elected: `session` leads under `term`.
    #[must_use]
    pub fn new(
        session: SessionId,
        term: Term,
        pace: Pace,
        drift: Drift,
        planted: Planted,
        now: Instant,
    ) -> Self {
        let blind = planted.has(Plant::PartitionLedgerNotLoaded);
        Self {
            session,
            term,
            pace,
            planted,
            phase: if blind { Phase::Looking } else { Phase::Loading },
            declared: Vec::new(),
            book: Book::default(),
            roster: Roster::new(pace, drift, now, planted),
            target: Assignment::default(),
            members: Vec::new(),
            replan: false,
            pending: false,
            stale: false,
            survey_at: now,
            revoking: BTreeMap::new(),
            serial: 0,
            asking: Asking::default(),
            sent: Vec::new(),
            began: None,
            asks: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    // ----- inputs ---------------------------------------------------------------------------

    /// The task lists as they are declared now, by their numbers in the ledger.
    pub fn declare(&mut self, declared: Vec<Declared>, now: Instant) {
        self.replan |= self.declared != declared;
        self.declared = declared;
        self.advance(now);
    }

    /// The ledger may have changed.
    pub fn hint(&mut self, now: Instant) {
        self.stale = true;
        self.advance(now);
    }

    /// What the renewals of its session have told; the same as last time is no news.
    pub fn renewed(&mut self, renewed: Renewed, now: Instant) {
        if self.book.renewed(renewed) {
            self.hint(now);
        }
    }

    /// Somebody may have come or gone.
    pub fn hint_members(&mut self, now: Instant) {
        self.survey_at = self.survey_at.min(now);
        self.advance(now);
    }

    /// Takes the answer to a question.
    pub fn reply(&mut self, serial: u64, outcome: Result<Told, Failure>, now: Instant) {
        match outcome {
            Ok(told) => {
                if let Some(sent) = self.asking.answered(serial) {
                    self.told(told, sent, now);
                }
            }
            Err(_) => {
                if self.asking.failed(serial, self.pace.patience, now) {
                    self.unanswered(now);
                }
            }
        }
        self.advance(now);
    }

    /// Does whatever is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    // ----- outputs --------------------------------------------------------------------------

    /// The next question for the store.
    pub fn poll_ask(&mut self) -> Option<Ask> {
        self.asks.pop_front()
    }

    /// The next event for the driver.
    pub fn poll_event(&mut self) -> Option<CoordinatorEvent> {
        self.events.pop_front()
    }

    /// When [`Coordinator::handle_timeout`] wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        if self.phase == Phase::Over {
            return None;
        }
        let wanted = self.phase == Phase::Loading || self.stale || self.pending || self.replan;
        let overdue = self.revoking.values().filter(|(_, told)| !told).map(|(at, _)| *at + self.pace.drain);
        let asking = self.asking.wake(Some(if wanted { Instant::ZERO } else { self.survey_at }));
        self.roster.wake(now).into_iter().chain(overdue).chain(asking).min()
    }

    /// Whether the plan is carried out, as far as it can be.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let planned = !self.replan && !self.pending && !self.stale;
        self.phase == Phase::Ready && planned && self.sent.is_empty() && self.revoking.is_empty()
    }

    // ----- answers --------------------------------------------------------------------------

    fn told(&mut self, told: Told, sent: Instant, now: Instant) {
        match told {
            Told::Read(page) => {
                if !self.book.turn(&page) {
                    self.over(CoordinatorEvent::WentBack);
                    return;
                }
                self.stale |= page.more;
                self.pending = true;
                self.note_revocations(page.entries.iter().map(|entry| entry.partition), now);
                if self.phase == Phase::Loading && !page.more {
                    self.phase = Phase::Looking;
                    self.survey_at = now;
                }
            }
            Told::Survey { revision, seen } => {
                self.stale |= revision != self.book.cursor;
                self.surveyed(seen, sent, now);
            }
            Told::Published { revision, refused } => self.published(revision, &refused, now),
            Told::TermOver => self.over(CoordinatorEvent::TermOver),
            Told::Overtaken => {
                self.sent.clear();
                (self.stale, self.pending) = (true, true);
            }
            Told::Acknowledged { .. } => {}
        }
    }

    fn surveyed(&mut self, sightings: Vec<Sighting>, sent: Instant, now: Instant) {
        if self.roster.survey(sightings, sent, now) {
            self.members_changed(now);
        }
        self.survey_at = now + self.pace.survey_every;
        if self.phase == Phase::Looking {
            self.phase = Phase::Ready;
            self.replan = true;
            self.events.push_back(CoordinatorEvent::Ready);
        }
    }

    fn published(&mut self, revision: Revision, refused: &[Partition], now: Instant) {
        let sent = std::mem::take(&mut self.sent);
        let refused: BTreeSet<Partition> = refused.iter().copied().collect();
        if refused.len() < sent.len() {
            if self.book.knows(revision) {
                self.over(CoordinatorEvent::WentBack);
                return;
            }
            self.book.published = revision;
        }
        for change in sent.iter().filter(|change| !refused.contains(&change.partition())) {
            let partition = change.partition();
            let holding = match change {
                Change::Assign { to, .. } => Holding::Owned(*to),
                Change::Revoke { .. } => match self.book.row(partition).holding {
                    Holding::Owned(owner) | Holding::Revoking(owner) => Holding::Revoking(owner),
                    Holding::Vacant => Holding::Vacant,
                },
            };
            self.book.write(&Entry { partition, revision, holding });
        }
        self.note_revocations(sent.iter().map(Change::partition), now);
        // Whatever was refused is not as we believed.
        if !refused.is_empty() {
            self.stale = true;
            self.survey_at = now;
        }
        if !self.roster.silent().is_empty() {
            self.survey_at = now;
        }
        self.pending = true;
    }

    /// A question remained without an answer. It may have taken effect.
    fn unanswered(&mut self, now: Instant) {
        if !std::mem::take(&mut self.sent).is_empty() {
            self.stale = true;
            self.pending = true;
        }
        if self.phase == Phase::Looking {
            self.survey_at = now;
        }
    }

    fn over(&mut self, event: CoordinatorEvent) {
        self.phase = Phase::Over;
        self.asks.clear();
        self.events.push_back(event);
    }

    /// Keeps account of what is being revoked. Who was silent for too long may have spoken since: only what
    /// the store says is over counts no more.
    fn note_revocations(&mut self, partitions: impl Iterator<Item = Partition>, now: Instant) {
        for partition in partitions {
            match self.book.row(partition).holding {
                Holding::Revoking(owner) if !self.roster.is_ended(owner) => {
                    self.revoking.entry(partition).or_insert((now, false));
                }
                _ => _ = self.revoking.remove(&partition),
            }
        }
    }

    /// Somebody has come or gone.
    fn members_changed(&mut self, now: Instant) {
        (self.replan, self.pending) = (true, true);
        // What a session owned that has ended is as good as vacant.
        let all: Vec<Partition> = self.book.rows().map(|(partition, _)| partition).collect();
        self.note_revocations(all.into_iter(), now);
    }

    // ----- what is next ---------------------------------------------------------------------

    fn advance(&mut self, now: Instant) {
        if self.phase == Phase::Over {
            return;
        }
        if self.asking.expire(self.pace.patience, now) {
            self.unanswered(now);
        }
        if self.roster.judge(now) {
            self.members_changed(now);
        }
        self.tell_overdue(now);
        if !self.asking.is_free(now) {
            return;
        }
        let loading = self.phase == Phase::Loading;
        if let Some(demand) = self.next(loading, now) {
            self.serial += 1;
            self.asks.push_back(self.asking.ask(self.serial, demand, self.pace.patience, now));
        }
        if self.is_settled()
            && let Some(began) = self.began.take()
        {
            self.events.push_back(CoordinatorEvent::CarriedOut { took: now.since(began) });
        }
    }

    fn next(&mut self, loading: bool, now: Instant) -> Option<Demand> {
        if loading || self.stale {
            self.stale = false;
            return Some(Demand::Read { since: self.book.open(), of: None });
        }
        if now >= self.survey_at || self.has_strangers() {
            self.survey_at = now + self.pace.survey_every;
            return Some(Demand::Survey);
        }
        if self.phase != Phase::Ready {
            return None;
        }
        self.replan(now);
        if !std::mem::take(&mut self.pending) {
            return None;
        }
        let (changes, more) = self.changes(now);
        let mut retire = self.roster.silent();
        retire.truncate(self.pace.batch);
        if changes.is_empty() && retire.is_empty() {
            return None;
        }
        self.pending = more;
        self.sent.clone_from(&changes);
        if !changes.is_empty() {
            self.began.get_or_insert(now);
        }
        let (session, term, after) = (self.session, self.term, self.book.published);
        Some(Demand::Publish { session, term, after, retire, changes })
    }

    /// Whether the ledger names a session that was never seen.
    fn has_strangers(&self) -> bool {
        let ready = self.phase == Phase::Ready && self.pending;
        ready
            && self
                .book
                .rows()
                .any(|(_, row)| row.holding.owner().is_some_and(|owner| !self.roster.knows(owner)))
    }

    fn tell_overdue(&mut self, now: Instant) {
        for (partition, (since, told)) in &mut self.revoking {
            if !*told && now.since(*since) >= self.pace.drain {
                *told = true;
                self.events.push_back(CoordinatorEvent::Overdue { partition: *partition });
            }
        }
    }

    // ----- planning -------------------------------------------------------------------------

    fn replan(&mut self, now: Instant) {
        // Who is expected back, or has to prove itself, changes with time alone.
        let members = self.roster.members(now);
        if members != self.members {
            self.replan = true;
        }
        if !std::mem::take(&mut self.replan) {
            return;
        }
        let lists: Vec<TaskList> = self.declared.iter().map(|declared| self.resolve(declared)).collect();
        let outcome = plan(&lists, &members, &self.current(now));
        self.members = members;
        self.target = outcome.next;
        self.pending = true;
        let owners: BTreeSet<SessionId> =
            self.book.rows().filter_map(|(_, row)| row.holding.owner()).collect();
        self.roster.forget(|session| owners.contains(&session), now);
        if !outcome.moves.is_empty() {
            self.events.push_back(CoordinatorEvent::Planned { moves: outcome.moves.len() });
        }
    }

    fn resolve(&self, declared: &Declared) -> TaskList {
        let excluded = declared.excluded.iter().filter_map(|node| self.roster.find(node)).collect();
        let pins = declared.pins.iter().filter_map(|(number, node)| Some((*number, self.roster.find(node)?)));
        TaskList { excluded, pins: pins.collect(), ..declared.tasks.clone() }
    }

    /// Who owns what, for the plan. What nobody owns, or nobody will own any more, is where it was last
    /// planned to be, so that a plan that is being carried out is not thrown over.
    fn current(&self, now: Instant) -> Assignment {
        let lists = self.declared.len().max(self.book.lists());
        let counts = (0..lists).map(|list| {
            let declared = self.declared.get(list).map_or(0, |declared| declared.tasks.partitions);
            declared.max(self.book.count(list))
        });
        let mut current = Assignment::vacant(counts);
        let all: Vec<Partition> = current.iter().map(|(partition, _)| partition).collect();
        for partition in all {
            let owner = match self.book.row(partition).holding {
                Holding::Owned(session) => self.roster.node_of(session, now),
                Holding::Revoking(_) | Holding::Vacant => None,
            };
            current.set(partition, owner.or_else(|| self.target.owner(partition)));
        }
        current
    }

    /// What is to be written now, and whether there is more.
    fn changes(&self, now: Instant) -> (Vec<Change>, bool) {
        let mut changes = Vec::new();
        let unlimited = self.planted.has(Plant::PartitionMovesUnlimited);
        let most = if unlimited { usize::MAX } else { self.pace.moves as usize };
        let mut moving = self.revoking.len();
        for partition in self.everything() {
            if changes.len() >= self.pace.batch {
                return (changes, true);
            }
            let row = self.book.row(partition);
            let target = self.target.owner(partition);
            let owner = row.holding.owner().filter(|owner| self.roster.may_work(*owner));
            match (owner, row.holding) {
                (Some(owner), Holding::Owned(_)) if self.roster.node_of(owner, now) != target => {
                    if self.planted.has(Plant::PartitionAssignedBeforeRelease) {
                        changes.extend(self.assign(partition, row.revision, target));
                    } else if moving < most {
                        moving += 1;
                        changes.push(Change::Revoke { partition, seen: row.revision });
                    }
                }
                (Some(_), _) => {}
                (None, _) => changes.extend(self.assign(partition, row.revision, target)),
            }
        }
        (changes, false)
    }

    fn assign(&self, partition: Partition, seen: Revision, target: Option<NodeIndex>) -> Option<Change> {
        let to = self.roster.live(target?)?;
        Some(Change::Assign { partition, seen, to })
    }

    fn everything(&self) -> impl Iterator<Item = Partition> + '_ {
        let lists = self.target.lists().max(self.book.lists());
        (0..u32::try_from(lists).unwrap_or(u32::MAX)).flat_map(|list| {
            let count = self.target.count(list).max(self.book.count(list as usize));
            (0..count).map(move |number| Partition { list, number })
        })
    }
}
