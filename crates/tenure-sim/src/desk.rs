//! The partitions of a simulated node: the real worker, the real coordinator while it leads, and a user
//! whose work on partitions takes its time to stop.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::partitions::{
    Ask, Coordinator, CoordinatorEvent, Declared, Drain, Pace, Partition, Revision, TaskList, Told, Worker,
    WorkerEvent,
};
use tenure_core::{Drift, Event, Failure, Instant, Machine, Planted, StoreIdentity};

use crate::clock::{Real, nanos};
use crate::config::{Config, Division};
use crate::ledger::COORDINATOR;
use crate::node::Work;
use crate::store::Moment;
use crate::world::{What, World};

/// Which of the two has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The worker.
    Worker,
    /// The coordinator of this election of the node: a later one does not know the question.
    Coordinator(u64),
}

/// What a node has to do with partitions.
#[derive(Debug)]
pub struct Desk {
    /// Works.
    pub worker: Worker,
    /// Coordinates, while the node leads.
    pub coordinator: Option<Coordinator>,
    /// Counts its coordinators.
    tenure: u64,
    /// What its user does.
    pub work: BTreeMap<Partition, Work>,
    later: bool,
}

impl Desk {
    /// A desk at which nothing happens yet.
    #[must_use]
    pub fn new(ttl: Duration, planted: Planted) -> Self {
        let drain = Drain { finish: ttl * 2, abort: ttl / 2, ..Drain::new(ttl) };
        Self {
            worker: Worker::new(drain).planted(planted),
            coordinator: None,
            tenure: 0,
            work: BTreeMap::new(),
            later: false,
        }
    }

    fn timeout(&self, now: Instant) -> Option<Instant> {
        let coordinator = self.coordinator.as_ref().and_then(|coordinator| coordinator.poll_timeout(now));
        self.worker.poll_timeout().into_iter().chain(coordinator).min()
    }
}

/// The pace of a run.
fn pace(ttl: Duration, division: &Division) -> Pace {
    let Division { moves, grace, .. } = *division;
    Pace { moves, grace, batch: 3, steady: ttl * 2, ..Pace::new(ttl) }
}

impl World {
    /// The fencing token under which a node passes its check for a partition, if it does.
    #[must_use]
    pub fn owns(&self, node: usize, partition: Partition) -> Option<Revision> {
        let node = &self.nodes[node];
        let (desk, machine) = (node.desk.as_ref()?, node.machine.as_ref()?);
        desk.worker.check(partition, machine.deadline(), node.now(self.real))
    }

    /// Every partition that there is at the moment.
    #[must_use]
    pub fn partitions(&self) -> Vec<Partition> {
        let Some(division) = &self.config.division else { return Vec::new() };
        let counts = if self.is_later() { &division.later } else { &division.lists };
        let all = (0..)
            .zip(counts)
            .flat_map(|(list, count)| (0..*count).map(move |number| Partition { list, number }));
        all.collect()
    }

    /// Which of the two sets of task lists is declared: they take turns until all is calm, so that partitions are
    /// taken away and given back in quick succession.
    fn is_later(&self) -> bool {
        self.calm || (self.real / (self.config.ttl * 3 / 2)) % 2 == 1
    }

    /// Opens a desk for a node that starts, in a run that is about partitions.
    pub(crate) fn furnish(&mut self, node: usize) {
        if self.config.division.is_some() {
            let ttl = self.nodes[node].config.ttl;
            self.nodes[node].desk = Some(Box::new(Desk::new(ttl, self.planted)));
        }
    }

    /// What a node's events mean to its desk.
    pub(crate) fn heed_at_desk(&mut self, node: usize, event: &Event) {
        let (real, config, planted, later) = (self.real, &self.config, self.planted, self.is_later());
        let drift = Drift::from_thousandths(config.drift).unwrap_or(Drift::DEFAULT);
        let slot = &mut self.nodes[node];
        let now = slot.clock.read(real);
        let (Some(desk), Some(machine)) = (slot.desk.as_deref_mut(), slot.machine.as_ref()) else { return };
        match event {
            Event::Opened { session } => desk.worker.opened(*session, machine.wary_until()),
            Event::SessionLost { .. } | Event::Closed => desk.worker.lost(),
            Event::Elected { election, term } if election.index() == COORDINATOR => {
                let Some(session) = machine.session() else { return };
                desk.tenure += 1;
                desk.later = later;
                desk.coordinator = coordinator(config, slot.config.ttl, desk.later, now, |pace| {
                    Coordinator::new(session, *term, pace, drift, planted, now)
                });
            }
            Event::Deposed { election, .. } if election.index() == COORDINATOR => desk.coordinator = None,
            _ => {}
        }
    }

    /// Gives the desk its turn, and carries out what it wants. Says whether the machine was given an input.
    pub(crate) fn attend(&mut self, node: usize, now: Instant) -> bool {
        let later = self.is_later();
        let slot = &mut self.nodes[node];
        let (Some(desk), Some(machine)) = (slot.desk.as_deref_mut(), slot.machine.as_mut()) else {
            return false;
        };
        if machine.is_closing() {
            desk.worker.lost();
        }
        desk.worker.renewed(machine.renewals(), now);
        if let Some(coordinator) = &mut desk.coordinator {
            coordinator.renewed(machine.renewals(), now);
        }
        if let (Some(coordinator), Some(division)) = (&mut desk.coordinator, &self.config.division)
            && later != desk.later
        {
            desk.later = later;
            coordinator.declare(declared(division, later), now);
        }
        let mut asks: Vec<(Side, Ask)> = Vec::new();
        while let Some(ask) = desk.worker.poll_ask() {
            asks.push((Side::Worker, ask));
        }
        let mut told = Vec::new();
        if let Some(coordinator) = &mut desk.coordinator {
            while let Some(ask) = coordinator.poll_ask() {
                asks.push((Side::Coordinator(desk.tenure), ask));
            }
            while let Some(event) = coordinator.poll_event() {
                told.push(event);
            }
        }
        let mut events = Vec::new();
        while let Some(event) = desk.worker.poll_event() {
            events.push(event);
        }
        for (side, ask) in asks {
            self.put(node, side, ask);
        }
        let mut changed = false;
        for event in told {
            changed |= self.heed_coordinator(node, event, now);
        }
        for event in events {
            changed |= self.heed_worker(node, event, now);
        }
        changed
    }

    /// When the desk wants its turn.
    pub(crate) fn desk_timeout(&self, node: usize, now: Instant) -> Option<Instant> {
        self.nodes[node].desk.as_ref()?.timeout(now)
    }

    /// The timer of a node has fired.
    pub(crate) fn wake_desk(&mut self, node: usize, now: Instant) {
        if let Some(desk) = self.nodes[node].desk.as_deref_mut() {
            desk.worker.handle_timeout(now);
            if let Some(coordinator) = &mut desk.coordinator {
                coordinator.handle_timeout(now);
            }
        }
    }

    fn heed_coordinator(&mut self, node: usize, event: CoordinatorEvent, now: Instant) -> bool {
        self.trace.mix(node as u64);
        self.trace.line(self.real, || format!("n{node} coordinator: {event:?}"));
        let doubts = event == CoordinatorEvent::WentBack;
        if let (true, Some(machine)) = (doubts, self.nodes[node].machine.as_mut()) {
            machine.doubt(now);
        }
        doubts
    }

    fn heed_worker(&mut self, node: usize, event: WorkerEvent, now: Instant) -> bool {
        self.trace.mix(node as u64);
        self.trace.line(self.real, || format!("n{node} worker: {event:?}"));
        let (life, real) = (self.nodes[node].life, self.real);
        let early = self.planted.has(tenure_core::Plant::PartitionsReopenEarly);
        let clumsy = self.nodes[node].ails.clumsy > 0;
        let ttl = nanos(self.nodes[node].config.ttl);
        let margin = nanos(self.nodes[node].config.stop_margin);
        let stops = |world: &mut Self, partition, most: Real| {
            let at = real + world.dice.below(most);
            world.at(at, What::PartitionStopped { node, life, partition });
        };
        match event {
            WorkerEvent::Assigned { partition, .. } => {
                self.assignments += 1;
                let slot = &mut self.nodes[node];
                if let (Some(desk), Some(machine)) = (slot.desk.as_deref_mut(), slot.machine.as_mut()) {
                    let before = desk.work.insert(partition, Work::Running);
                    if before.is_none_or(|work| work == Work::None) && !early {
                        machine.occupy();
                    }
                }
            }
            WorkerEvent::Stop { partition, until } => {
                self.set_work(node, partition, Work::Stopping);
                match until {
                    // At once: the session is over.
                    None => stops(self, partition, if clumsy { ttl * 2 } else { margin / 4 }),
                    Some(_) => stops(self, partition, if clumsy { ttl * 6 } else { ttl }),
                }
            }
            WorkerEvent::Abort { partition } if !clumsy => stops(self, partition, ttl / 20),
            WorkerEvent::Abort { .. } => {}
            WorkerEvent::Surrender => {
                if let Some(machine) = self.nodes[node].machine.as_mut() {
                    machine.surrender(now);
                }
                return true;
            }
            WorkerEvent::WentBack => {
                if let Some(machine) = self.nodes[node].machine.as_mut() {
                    machine.doubt(now);
                }
                return true;
            }
        }
        false
    }

    fn set_work(&mut self, node: usize, partition: Partition, work: Work) {
        if let Some(desk) = self.nodes[node].desk.as_deref_mut() {
            desk.work.insert(partition, work);
        }
    }

    /// A user's work on a partition has stopped.
    pub(crate) fn partition_stopped(&mut self, node: usize, partition: Partition) {
        let working = self.nodes[node].desk.as_ref().and_then(|desk| desk.work.get(&partition).copied());
        if working != Some(Work::Stopping) {
            return;
        }
        self.set_work(node, partition, Work::None);
        self.trace.line(self.real, || format!("n{node} {partition:?} work has stopped"));
        let early = self.planted.has(tenure_core::Plant::PartitionsReopenEarly);
        let now = self.nodes[node].now(self.real);
        if let Some(desk) = self.nodes[node].desk.as_deref_mut() {
            desk.worker.stopped(partition, now);
        }
        self.drive(node, |machine, now| {
            if !early {
                machine.vacate(now);
            }
        });
    }

    // ----- the network and the store --------------------------------------------------------

    fn put(&mut self, node: usize, side: Side, ask: Ask) {
        self.trace.mix(ask.serial);
        self.trace.line(self.real, || format!("n{node} {side:?} asks {:?}", ask.demand));
        let life = self.nodes[node].life;
        let question = What::Question { node, life, side, ask: Box::new(ask) };
        self.send_off(node, question);
    }

    /// A question reaches the store.
    pub(crate) fn question(&mut self, node: usize, life: u32, side: Side, ask: &Ask) {
        if self.store_ails.hangs > 0 {
            return;
        }
        let outcome = if self.store_ails.refuses > 0 {
            Err(Failure::Unavailable)
        } else {
            let now = Moment { sent: self.real, ..self.moment() };
            self.store.attend(&ask.demand, now)
        };
        self.trace.line(self.real, || format!("store tells n{node}: {outcome:?}"));
        self.after_store();
        if self.cut_off(node) {
            return;
        }
        let at = self.real + self.travel(node);
        let (executed, serial) = (self.real, ask.serial);
        self.at(at, What::Answer { node, life, executed, side, serial, outcome: Box::new(outcome) });
    }

    /// An answer reaches its node.
    pub(crate) fn answer(
        &mut self,
        node: usize,
        side: Side,
        serial: u64,
        outcome: Result<(StoreIdentity, Told), Failure>,
    ) {
        self.drive_with_desk(node, |machine, desk, now| {
            let told = match outcome {
                Ok((store, told)) if machine.hears(store, now) => Ok(told),
                Ok(_) => Err(Failure::Indeterminate),
                Err(failure) => Err(failure),
            };
            match (side, &mut desk.coordinator) {
                (Side::Worker, _) => {
                    desk.worker.reply(serial, told, machine.session(), now);
                    machine.noticed(desk.worker.noticed());
                }
                (Side::Coordinator(tenure), Some(coordinator)) if tenure == desk.tenure => {
                    coordinator.reply(serial, told, now);
                }
                (Side::Coordinator(_), _) => {}
            }
        });
    }

    /// News of the ledger reaches a node.
    pub(crate) fn ledger_hint(&mut self, node: usize) {
        self.drive_with_desk(node, |_, desk, now| {
            desk.worker.hint(now);
            if let Some(coordinator) = &mut desk.coordinator {
                coordinator.hint(now);
            }
        });
    }

    fn drive_with_desk(&mut self, node: usize, input: impl FnOnce(&mut Machine, &mut Desk, Instant)) {
        let Some(mut desk) = self.nodes[node].desk.take() else { return };
        let (slot, real) = (&mut self.nodes[node], self.real);
        let now = slot.now(real);
        let wall = slot.wall(real);
        // A driver looks at its clocks before anything else.
        if let Some(machine) = slot.machine.as_mut() {
            machine.clock(wall, now);
            input(machine, &mut desk, now);
        }
        slot.desk = Some(desk);
        self.drive(node, |_, _| {});
    }
}

fn declared(division: &Division, later: bool) -> Vec<Declared> {
    let counts = if later { &division.later } else { &division.lists };
    counts.iter().map(|count| TaskList::new(*count).into()).collect()
}

fn coordinator(
    config: &Config,
    ttl: Duration,
    later: bool,
    now: Instant,
    new: impl FnOnce(Pace) -> Coordinator,
) -> Option<Coordinator> {
    let division = config.division.as_ref()?;
    let mut coordinator = new(pace(ttl, division));
    coordinator.declare(declared(division, later), now);
    Some(coordinator)
}
