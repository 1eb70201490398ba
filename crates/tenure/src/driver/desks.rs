//! What a node has to do with partitions: it works on them, and divides them while it leads. Here the driver
//! connects the machines for that with the session, the store and the handles, as it does for elections.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::partitions::{Coordinator, CoordinatorEvent, Drain, Pace, Partition, Worker, WorkerEvent};
use tenure_core::{ElectionName, Failure, Instant, Planted, Reason, SessionId, TaskListName, Term};
use tenure_store::{Hint, Published};
use tokio::sync::{mpsc, watch};

use super::Driver;
use super::enlistment::keep_enlisted;
use super::ledger::{Heard, Side, Word};
use super::words::Vocabulary;
use crate::event::NodeEvent;
use crate::office::Office;
use crate::partitions::{Assigned, Worker as Document};

/// Offices of partitions are told from those of elections by this bit of their ids.
const OF_PARTITION: u64 = 1 << 63;

/// The partitions of one ledger, as this node has to do with them.
pub(super) struct Desk {
    worker: Worker,
    coordinator: Option<Coordinator>,
    /// The term that it coordinates under.
    term: Term,
    /// Counts its coordinators.
    tenure: u64,
    vocabulary: Vocabulary,
    /// Who works on which task list.
    lists: BTreeMap<TaskListName, mpsc::UnboundedSender<Assigned>>,
    /// The work that runs.
    posts: BTreeMap<Partition, Post>,
    /// What the coordinator shall know of this node.
    enlist: watch::Sender<Option<(SessionId, String)>>,
    /// Why the last session is over.
    reason: Reason,
}

struct Post {
    office: Arc<Office>,
    list: TaskListName,
    /// Its work was told to stop.
    revoked: bool,
}

#[derive(Default)]
pub(super) struct Desks {
    by_election: HashMap<ElectionName, Desk>,
    /// Counts the offices of partitions.
    offices: u64,
    /// The node is closing, and all work was told so.
    closing: bool,
}

impl Desks {
    pub(super) fn wake(&self, now: Instant) -> Option<Instant> {
        let desks = self.by_election.values();
        desks
            .filter_map(|desk| {
                let coordinator =
                    desk.coordinator.as_ref().and_then(|coordinator| coordinator.poll_timeout(now));
                desk.worker.poll_timeout().into_iter().chain(coordinator).min()
            })
            .min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for desk in self.by_election.values_mut() {
            if desk.worker.poll_timeout().is_some_and(|at| at <= now) {
                desk.worker.handle_timeout(now);
            }
            if let Some(coordinator) = &mut desk.coordinator
                && coordinator.poll_timeout(now).is_some_and(|at| at <= now)
            {
                coordinator.handle_timeout(now);
            }
        }
    }

    pub(super) fn hint(&mut self, hint: &Hint, now: Instant) {
        for (election, desk) in &mut self.by_election {
            match hint {
                Hint::Election(about) | Hint::Named { election: about, .. } if about != election => {}
                Hint::Election(_) | Hint::Named { .. } | Hint::All => {
                    desk.worker.hint(now);
                    if let Some(coordinator) = &mut desk.coordinator {
                        coordinator.hint(now);
                    }
                }
                Hint::Nodes => {
                    if let Some(coordinator) = &mut desk.coordinator {
                        coordinator.hint_members(now);
                    }
                }
            }
        }
    }

    /// The session is over, or about to be closed.
    pub(super) fn lost(&mut self, reason: Reason) {
        for desk in self.by_election.values_mut() {
            desk.lose(reason);
        }
    }

    /// This node leads an election no longer.
    pub(super) fn deposed(&mut self, election: &ElectionName) {
        if let Some(desk) = self.by_election.get_mut(election) {
            desk.coordinator = None;
        }
    }
}

impl Desk {
    fn lose(&mut self, reason: Reason) {
        self.reason = reason;
        self.coordinator = None;
        self.worker.lost();
        self.enlist.send_replace(None);
    }
}

impl Driver {
    // ----- what the handles ask for -----------------------------------------------------------

    pub(super) fn work(
        &mut self,
        election: &ElectionName,
        list: TaskListName,
        assign: mpsc::UnboundedSender<Assigned>,
    ) {
        self.desk(election).lists.insert(list, assign);
        self.enlist(election);
    }

    pub(super) fn rest(&mut self, election: &ElectionName, list: &TaskListName) {
        self.desk(election).lists.remove(list);
        self.enlist(election);
    }

    pub(super) fn partition_stopped(
        &mut self,
        election: &ElectionName,
        partition: Partition,
        id: u64,
        now: Instant,
    ) {
        let Some(mut desk) = self.desks.by_election.remove(election) else { return };
        if desk.posts.get(&partition).is_some_and(|post| post.office.id == id) {
            self.release(&mut desk, partition, now);
        }
        self.desks.by_election.insert(election.clone(), desk);
    }

    pub(super) fn coordinate(&mut self, election: &ElectionName, term: Term, now: Instant) {
        let slot = self.slots.find(election).and_then(|key| self.slots.get(key));
        let office = slot.and_then(|slot| slot.office.as_ref());
        let leads = office.is_some_and(|office| office.term == term && office.check().is_ok());
        let Some(session) = self.machine.session().filter(|_| leads) else { return };
        let (pace, drift) = (Pace::new(self.ttl), self.settings.drift);
        let desk = self.desk(election);
        if desk.coordinator.is_some() && desk.term == term {
            return;
        }
        let mut coordinator = Coordinator::new(session, term, pace, drift, Planted::default(), now);
        coordinator.declare(desk.vocabulary.declared(), now);
        desk.coordinator = Some(coordinator);
        desk.term = term;
        desk.tenure += 1;
    }

    fn desk(&mut self, election: &ElectionName) -> &mut Desk {
        if !self.desks.by_election.contains_key(election) {
            let (enlist, wanted) = watch::channel(None);
            let (limit, pause) = (self.ttl.max(Duration::from_secs(1)), self.settings.poll_every);
            self.asides.push(keep_enlisted(Arc::clone(&self.store), election.clone(), wanted, limit, pause));
            let drain = Drain::new(self.ttl);
            // Whoever was promised more time to stop has it.
            let mut worker = Worker::new(Drain { finish: drain.finish.max(self.grace), ..drain });
            if let Some(session) = self.machine.session().filter(|_| !self.machine.is_closing()) {
                worker.opened(session, self.machine.wary_until());
            }
            let desk = Desk {
                worker,
                coordinator: None,
                term: Term::NONE,
                tenure: 0,
                vocabulary: Vocabulary::default(),
                lists: BTreeMap::new(),
                posts: BTreeMap::new(),
                enlist,
                reason: Reason::Lapsed,
            };
            self.desks.by_election.insert(election.clone(), desk);
        }
        self.desks.by_election.get_mut(election).expect("it was just put there")
    }

    fn enlist(&self, election: &ElectionName) {
        let Some(session) = self.machine.session().filter(|_| !self.machine.is_closing()) else { return };
        if let Some(desk) = self.desks.by_election.get(election) {
            let lists = desk.lists.keys().cloned().collect();
            let document = Document { lists, ..Document::labelled(&self.info.labels) };
            desk.enlist.send_replace(Some((session, document.write())));
        }
    }

    // ----- what the machine tells -------------------------------------------------------------

    pub(super) fn desks_opened(&mut self, session: SessionId) {
        let elections: Vec<ElectionName> = self.desks.by_election.keys().cloned().collect();
        for election in elections {
            if let Some(desk) = self.desks.by_election.get_mut(&election) {
                desk.worker.opened(session, self.machine.wary_until());
            }
            self.enlist(&election);
        }
    }

    /// Gives every desk its turn. Whether the machine was told something by it.
    pub(super) fn attend(&mut self, now: Instant) -> bool {
        if self.machine.is_closing() && !std::mem::replace(&mut self.desks.closing, true) {
            self.desks.lost(Reason::Closing);
            let posts = self.desks.by_election.values().flat_map(|desk| desk.posts.values());
            self.cut_offs.extend(posts.map(|post| Reverse((now + self.grace, post.office.id))));
        }
        let elections: Vec<ElectionName> = self.desks.by_election.keys().cloned().collect();
        let mut told = false;
        for election in elections {
            if let Some(mut desk) = self.desks.by_election.remove(&election) {
                told |= self.attend_one(&election, &mut desk, now);
                self.desks.by_election.insert(election, desk);
            }
        }
        told
    }

    fn attend_one(&mut self, election: &ElectionName, desk: &mut Desk, now: Instant) -> bool {
        let renewed = self.machine.renewals();
        desk.worker.renewed(renewed, now);
        if let Some(coordinator) = &mut desk.coordinator {
            coordinator.renewed(renewed, now);
        }
        let mut told = false;
        while let Some(event) = desk.worker.poll_event() {
            told |= self.heed_worker(election, desk, event, now);
        }
        while let Some(event) = desk.coordinator.as_mut().and_then(Coordinator::poll_event) {
            told |= self.heed_coordinator(election, event, now);
        }
        while let Some(ask) = desk.worker.poll_ask() {
            self.questions.put(&self.store, election, Side::Worker, ask, now);
        }
        while let Some(ask) = desk.coordinator.as_mut().and_then(Coordinator::poll_ask) {
            self.questions.put(&self.store, election, Side::Coordinator(desk.tenure), ask, now);
        }
        told
    }

    fn heed_worker(
        &mut self,
        election: &ElectionName,
        desk: &mut Desk,
        event: WorkerEvent,
        now: Instant,
    ) -> bool {
        match event {
            WorkerEvent::Assigned { partition, revision } => {
                self.assigned(election, desk, partition, Term::new(revision), now)
            }
            WorkerEvent::Stop { partition, until } => {
                let reason = if until.is_some() { Reason::Asked } else { desk.reason };
                self.stop(desk, partition, reason, now);
                false
            }
            WorkerEvent::Abort { partition } => {
                if let Some(post) = desk.posts.get(&partition)
                    && !post.office.cut_off()
                {
                    tracing::warn!(
                        target: "tenure", task_list = %post.list, partition = partition.number,
                        "the partition was revoked, but its work has not stopped: drop every clone of its `Partition`",
                    );
                }
                false
            }
            WorkerEvent::Surrender => {
                tracing::error!(
                    target: "tenure", %election,
                    "work on a revoked partition does not stop: the session is given up, so that others can go on",
                );
                self.machine.surrender(now);
                true
            }
            WorkerEvent::WentBack => {
                self.machine.doubt(now);
                true
            }
        }
    }

    fn heed_coordinator(&mut self, election: &ElectionName, event: CoordinatorEvent, now: Instant) -> bool {
        match event {
            CoordinatorEvent::Ready => tracing::debug!(target: "tenure", %election, "the ledger is loaded"),
            CoordinatorEvent::Planned { moves } => {
                tracing::debug!(target: "tenure", %election, moves, "there is a new plan");
            }
            CoordinatorEvent::CarriedOut { took } => {
                self.observe(&NodeEvent::PlanCarriedOut { election: election.clone(), took });
            }
            CoordinatorEvent::Overdue { partition } => {
                tracing::warn!(target: "tenure", %election, ?partition, "its owner takes long to give it up");
            }
            CoordinatorEvent::TermOver => {
                if let Some(key) = self.slots.find(election) {
                    self.machine.hint(key, now); // to find out
                }
                return true;
            }
            CoordinatorEvent::WentBack => {
                self.machine.doubt(now);
                return true;
            }
        }
        false
    }

    fn assigned(
        &mut self,
        election: &ElectionName,
        desk: &mut Desk,
        partition: Partition,
        term: Term,
        now: Instant,
    ) -> bool {
        // Given for a task list that this node works on no longer, it lies idle until it is revoked.
        let Some(list) = desk.vocabulary.name(partition.list).cloned() else { return false };
        let (Some(assign), Some(session)) = (desk.lists.get(&list), self.machine.session()) else {
            return false;
        };
        self.desks.offices += 1;
        let id = OF_PARTITION | self.desks.offices;
        let office = Office::new(id, election.clone(), term, session, Arc::clone(&self.page));
        self.machine.occupy();
        self.roster.enter(Arc::clone(&office));
        let taken = assign.send(Assigned { office: Arc::clone(&office), partition }).is_ok();
        self.tell(NodeEvent::PartitionAssigned { list: list.clone(), partition: partition.number, term });
        desk.posts.insert(partition, Post { office, list, revoked: false });
        if !taken {
            self.release(desk, partition, now);
        }
        !taken
    }

    fn stop(&mut self, desk: &mut Desk, partition: Partition, reason: Reason, now: Instant) {
        let Some(Post { office, list, revoked }) = desk.posts.get_mut(&partition) else {
            desk.worker.stopped(partition, now); // nobody works on it
            return;
        };
        office.close(reason);
        *revoked = true;
        let (list, partition, term) = (list.clone(), partition.number, office.term);
        self.tell(NodeEvent::PartitionRevoked { list, partition, term, reason });
    }

    /// The work on a partition has stopped.
    fn release(&mut self, desk: &mut Desk, partition: Partition, now: Instant) {
        let Some(Post { office, list, revoked }) = desk.posts.remove(&partition) else { return };
        self.roster.strike(office.id);
        let (number, term) = (partition.number, office.term);
        self.tell(NodeEvent::PartitionReleased { list, partition: number, term, revoked });
        desk.worker.stopped(partition, now);
        self.machine.vacate(now);
    }

    // ----- what the store says ----------------------------------------------------------------

    pub(super) fn hear(&mut self, word: Word, now: Instant) {
        let Word { election, side, serial, verb, took, outcome } = word;
        self.observe(&NodeEvent::StoreAsked { verb, took, answered: outcome.is_ok() });
        let Some(mut desk) = self.desks.by_election.remove(&election) else { return };
        let heard = match outcome {
            Ok((store, heard)) => {
                self.answered(now);
                if self.machine.hears(store, now) { Ok(heard) } else { Err(Failure::Indeterminate) }
            }
            Err(error) => Err(self.unanswered(verb, error, now)),
        };
        match side {
            Side::Worker => {
                let told = heard.map(|heard| desk.vocabulary.told(heard));
                desk.worker.reply(serial, told, self.machine.session(), now);
                self.machine.noticed(desk.worker.noticed());
            }
            Side::Coordinator(tenure) if tenure == desk.tenure => {
                self.hear_for_coordinator(&election, &mut desk, serial, heard, now);
            }
            Side::Coordinator(_) => {}
        }
        self.desks.by_election.insert(election, desk);
    }

    fn hear_for_coordinator(
        &self,
        election: &ElectionName,
        desk: &mut Desk,
        serial: u64,
        heard: Result<Heard, Failure>,
        now: Instant,
    ) {
        if let Ok(Heard::Published(Published::Written { revision, .. })) = &heard {
            let (election, term, revision) = (election.clone(), desk.term, *revision);
            self.tell(NodeEvent::PlanPublished { election, term, revision });
        }
        let arranged = matches!(&heard, Ok(Heard::Leaf(leaf)) if !leaf.lists.is_empty());
        let told = heard.map(|heard| desk.vocabulary.told(heard));
        let Some(coordinator) = &mut desk.coordinator else { return };
        if arranged {
            coordinator.declare(desk.vocabulary.declared(), now);
        }
        coordinator.reply(serial, told, now);
    }
}
