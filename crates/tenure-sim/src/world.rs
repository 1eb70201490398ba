//! The world: an agenda of things to happen, and what happens.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tenure_core::partitions::{Ask, Partition, Told};
use tenure_core::{
    Answer, Dice, Event, Failure, Instant, Machine, News, NodeId, Planted, Request, RequestId, Stamp,
    Standing, StoreIdentity, Term, Verb,
};

use crate::clock::{Clock, Real, nanos};
use crate::config::{Config, MOST_ELECTIONS};
use crate::coverage::Coverage;
use crate::desk::Side;
use crate::fact::Fact;
use crate::failback::{Asking, Listed};
use crate::node::{SimNode, Work};
use crate::store::{Concern, ModelStore, Moment};
use crate::trace::Trace;
use crate::watch::Looked;

/// Something to happen.
#[derive(Clone, Debug)]
pub enum What {
    /// A node's timer fires.
    Wake { node: usize },
    /// A request reaches the store.
    Arrive { node: usize, life: u32, sent: Real, request: Request },
    /// A reply reaches its node.
    Reply {
        node: usize,
        life: u32,
        executed: Real,
        id: RequestId,
        outcome: Result<(StoreIdentity, Answer), Failure>,
    },
    /// A hint reaches a node.
    Hint { node: usize, election: usize, concern: Concern },
    /// A user's work has stopped.
    WorkStopped { node: usize, life: u32, election: usize },
    /// A user lets its node stand.
    Stand { node: usize, life: u32, election: usize },
    /// A user lets its node withdraw.
    Withdraw { node: usize, life: u32, election: usize },
    /// A question about partitions reaches the store.
    Question { node: usize, life: u32, side: Side, ask: Box<Ask> },
    /// Its answer reaches its node.
    Answer {
        node: usize,
        life: u32,
        executed: Real,
        side: Side,
        serial: u64,
        outcome: Box<Result<(StoreIdentity, Told), Failure>>,
    },
    /// A look of a node that watches the cluster reaches the store.
    Look { node: usize, life: u32, serial: u64 },
    /// Its answer reaches its node.
    Looked { node: usize, life: u32, serial: u64, told: Box<Looked> },
    /// A request to retire a session reaches the store.
    Retire(Stamp),
    /// A request of a candidate that fails back reaches the store.
    MakeWay(Asking),
    /// Its answer reaches its node.
    MayAsk(Asking, Box<Listed>),
    /// News of the ledger reaches a node.
    LedgerHint { node: usize },
    /// A user's work on a partition has stopped.
    PartitionStopped { node: usize, life: u32, partition: Partition },
    /// A stopped process goes on.
    Resume { node: usize },
    /// A frozen machine runs again.
    Thaw { node: usize },
    /// A node starts.
    Start { node: usize },
    /// The store's own timer fires.
    StoreTimer,
    /// The store's state is kept, to go back to.
    Snapshot,
    /// The leader of an election resigns.
    HandOver { election: usize },
    /// A fault begins.
    Fault(usize),
    /// A fault is over.
    FaultEnd(usize),
    /// The calm phase takes its next step.
    Calm,
}

#[derive(Debug)]
struct Entry {
    at: Real,
    order: u64,
    what: What,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// Faults of the store that are on, counted, since they may overlap.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreAils {
    /// Refuses everything.
    pub refuses: u32,
    /// Loses requests.
    pub hangs: u32,
    /// Loses replies.
    pub mute: u32,
    /// Loses hints.
    pub no_news: u32,
}

/// Everything there is.
#[derive(Debug)]
pub struct World {
    /// How it is configured.
    pub config: Config,
    /// Real time.
    pub real: Real,
    /// The nodes.
    pub nodes: Vec<SimNode>,
    /// The store.
    pub store: ModelStore,
    /// What is wrong with it.
    pub store_ails: StoreAils,
    /// What has happened since the invariants last looked.
    pub facts: Vec<Fact>,
    /// What happened, for people and for comparison.
    pub trace: Trace,
    /// Which faults met which roles.
    pub coverage: Coverage,
    /// How often somebody was elected.
    pub elections: u64,
    /// How often somebody was given a partition.
    pub assignments: u64,
    pub(crate) dice: Dice,
    pub(crate) calm: bool,
    /// Whether candidates that fail back may do so.
    pub(crate) fails_back: bool,
    /// The node whose application stays unhealthy through the calm phase, if there is one.
    pub(crate) unhealthy: Option<usize>,
    /// The election whose next leader is cut off as soon as it is elected.
    pub(crate) ambush: Option<usize>,
    agenda: BinaryHeap<Entry>,
    order: u64,
    pub(crate) planted: Planted,
    store_alarm: Option<Real>,
}

impl World {
    /// The world at its beginning.
    #[must_use]
    pub fn new(config: Config, planted: Planted, readable: bool) -> Self {
        let names: Vec<NodeId> = (0..config.nodes.len())
            .map(|n| NodeId::new(format!("n{n}")).expect("a letter and a digit are a name"))
            .collect();
        let nodes = config
            .nodes
            .iter()
            .zip(&names)
            .map(|(node, name)| SimNode::new(node.clone(), name.clone(), config.elections))
            .collect();
        let clock = Clock::new(config.store_rate, 1 << 55);
        let store =
            ModelStore::new(config.capabilities, config.ages, clock, names, config.elections, planted)
                .looking_every(config.tick)
                .in_strict_line(config.strict_line)
                .telling(config.renewals_tell);
        let mut world = Self {
            dice: Dice::new(config.seed),
            real: 0,
            nodes,
            store,
            store_ails: StoreAils::default(),
            facts: Vec::new(),
            trace: Trace::new(readable),
            coverage: Coverage::default(),
            elections: 0,
            assignments: 0,
            calm: false,
            fails_back: true,
            unhealthy: None,
            ambush: config.ambushed.then_some(0),
            agenda: BinaryHeap::new(),
            order: 0,
            planted,
            store_alarm: None,
            config,
        };
        for node in 0..world.nodes.len() {
            let at = world.dice.below(world.config.ttl / 2);
            world.at(at, What::Start { node });
        }
        for index in 0..world.config.faults.len() {
            let at = world.config.faults[index].at;
            world.at(at, What::Fault(index));
        }
        world.at(world.config.calm_at / 3, What::Snapshot);
        world.at(world.config.calm_at, What::Calm);
        world
    }

    /// Lets the next thing happen. `None`: nothing is left, or it is time for the calm phase to act.
    pub fn step(&mut self) -> Option<What> {
        let Entry { at, what, .. } = self.agenda.pop()?;
        self.real = at;
        self.trace.mix(at);
        self.trace.mix(self.order);
        match what {
            What::Wake { node } => {
                if self.nodes[node].alarm == Some(at) {
                    self.nodes[node].alarm = None;
                    self.input(node, What::Wake { node });
                }
            }
            What::Arrive { node, life, sent, request } => self.arrive(node, life, sent, &request),
            What::Question { node, life, side, ask } => self.question(node, life, side, &ask),
            What::Look { node, life, serial } => self.look(node, life, serial),
            What::Retire(stamp) => self.retire(stamp),
            What::MakeWay(asking) => self.make_way(asking),
            What::MayAsk(Asking { node, .. }, _)
            | What::Looked { node, .. }
            | What::Reply { node, .. }
            | What::Answer { node, .. }
            | What::LedgerHint { node }
            | What::PartitionStopped { node, .. }
            | What::Hint { node, .. }
            | What::WorkStopped { node, .. }
            | What::Stand { node, .. }
            | What::Withdraw { node, .. } => self.input(node, what),
            What::Resume { node } => self.resume(node),
            What::Thaw { node } => self.thaw(node),
            What::Start { node } => self.start(node),
            What::StoreTimer if self.store_alarm == Some(at) => {
                self.store_alarm = None;
                self.store.retire_expired(self.moment());
                self.after_store();
            }
            // The store has thought better of it since.
            What::StoreTimer => {}
            What::Snapshot => self.store.take_snapshot(),
            What::HandOver { election } => self.hand_over(election),
            What::Fault(index) => self.begin_fault(index),
            What::FaultEnd(index) => self.end_fault(index),
            What::Calm => return Some(What::Calm),
        }
        Some(What::Snapshot)
    }

    /// Puts something on the agenda.
    pub fn at(&mut self, at: Real, what: What) {
        self.order += 1;
        self.agenda.push(Entry { at: at.max(self.real), order: self.order, what });
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { real: self.real, sent: self.real, local: self.nodes[0].now(self.real) }
    }

    // ----- nodes ----------------------------------------------------------------------------

    pub(crate) fn start(&mut self, node: usize) {
        if self.nodes[node].machine.is_some() {
            return;
        }
        if self.nodes[node].paused {
            let later = self.real + self.config.ttl / 4;
            return self.at(later, What::Start { node });
        }
        let seed = self.dice.roll();
        self.nodes[node].boot(self.config.capabilities, self.config.drift, seed, self.planted);
        self.furnish(node);
        self.begin_watch(node);
        self.trace.line(self.real, || format!("n{node} starts"));
        let life = self.nodes[node].life;
        self.drive(node, |machine, now| machine.start(now));
        self.nodes[node].ails.told_unwell = false;
        self.tell_health(node);
        for election in 0..self.config.elections {
            if self.nodes[node].config.observes {
                let key = self.nodes[node].keys[election];
                self.drive(node, |machine, now| machine.observe(key, true, now));
            }
            if self.nodes[node].wants[election] {
                let at = self.real + self.dice.below(self.config.ttl / 10);
                self.at(at, What::Stand { node, life, election });
            }
        }
    }

    /// Something reaches a node: dealt with now, or kept while the node is stopped.
    fn input(&mut self, node: usize, what: What) {
        if self.nodes[node].machine.is_none() {
            return;
        }
        if self.nodes[node].paused {
            self.nodes[node].held.push(what);
            return;
        }
        match what {
            What::Wake { .. } => {
                self.wake_desk(node, self.nodes[node].now(self.real));
                self.drive(node, Machine::handle_timeout);
            }
            What::Answer { life, executed, side, serial, outcome, .. } if life == self.nodes[node].life => {
                self.nodes[node].hear(executed);
                self.answer(node, side, serial, *outcome);
            }
            What::Looked { life, serial, told, .. } if life == self.nodes[node].life => {
                self.looked(node, serial, *told);
            }
            What::MayAsk(asking, answer) if asking.life == self.nodes[node].life => {
                self.may_ask(asking, *answer);
            }
            What::LedgerHint { .. } => self.ledger_hint(node),
            What::PartitionStopped { life, partition, .. } if life == self.nodes[node].life => {
                self.partition_stopped(node, partition);
            }
            What::Reply { life, executed, id, outcome, .. } if life == self.nodes[node].life => {
                self.deliver(node, executed, id, outcome);
            }
            What::Hint { election, concern, .. } => {
                let key = self.nodes[node].keys[election];
                self.hurry_watch(node);
                self.drive(node, |machine, now| match concern {
                    Concern::Node(named) if named == node => machine.hint_named(key, now),
                    Concern::Node(_) => machine.hint_other(key, now),
                    Concern::Freed | Concern::All => machine.hint(key, now),
                });
            }
            What::WorkStopped { life, election, .. }
                if life == self.nodes[node].life && self.nodes[node].work[election] == Work::Stopping =>
            {
                self.nodes[node].work[election] = Work::None;
                self.trace.line(self.real, || format!("n{node} e{election} work has stopped"));
                let key = self.nodes[node].keys[election];
                self.drive(node, |machine, now| machine.stopped(key, now));
            }
            What::Withdraw { life, election, .. } if life == self.nodes[node].life => {
                self.withdraw(node, election);
            }
            What::Stand { life, election, .. } if life == self.nodes[node].life => {
                self.nodes[node].acquainted[election] = None;
                self.stand(node, election);
            }
            _ => {}
        }
    }

    fn deliver(
        &mut self,
        node: usize,
        executed: Real,
        id: RequestId,
        outcome: Result<(StoreIdentity, Answer), Failure>,
    ) {
        self.nodes[node].hear(executed);
        let told_lost = matches!(outcome, Err(Failure::SessionLost));
        let failed = outcome.is_err();
        let tells = matches!(outcome, Ok((_, Answer::Claim(Standing::Waiting { .. }) | Answer::Read(_))));
        // What the machine makes of it is known only once it has looked at its clocks.
        let (mut awaited, mut asking) = (false, false);
        self.drive(node, |machine, now| {
            awaited = machine.awaits(id);
            asking = machine.is_candidates(id);
            machine.reply(id, outcome, now);
        });
        if !awaited {
            return;
        }
        if !failed {
            self.nodes[node].met.get_or_insert(self.real);
        }
        if let Some(election) = self.election_of(node, id).filter(|_| tells && asking) {
            self.nodes[node].acquainted[election].get_or_insert(self.real);
            self.nodes[node].looked[election] = executed;
        }
        if told_lost {
            self.facts.push(Fact::ToldSessionLost { node });
        }
        if failed && id.election().is_none() {
            self.facts.push(Fact::Unrenewed { node });
        }
    }

    fn election_of(&self, node: usize, id: RequestId) -> Option<usize> {
        let key = id.election()?;
        self.nodes[node].keys.iter().position(|known| *known == key)
    }

    /// Gives a node an input, and carries out what its machine wants.
    pub(crate) fn drive(&mut self, node: usize, input: impl FnOnce(&mut Machine, Instant)) {
        let leads = self.leads(node);
        self.facts.push(Fact::Wakes { node, leads });
        let (now, wall) = (self.nodes[node].now(self.real), self.nodes[node].wall(self.real));
        let Some(mut machine) = self.nodes[node].machine.take() else { return };
        machine.clock(wall, now);
        self.nodes[node].stepped = false;
        input(&mut machine, now);
        let mut timeout = self.carry_out(node, machine, now);
        // What the desk makes of it may be news to the machine.
        while self.attend(node, now)
            && let Some(machine) = self.nodes[node].machine.take()
        {
            timeout = self.carry_out(node, machine, now);
        }
        let aside =
            [self.desk_timeout(node, now), self.attend_watch(node, now), self.attend_failback(node, now)];
        let timeout = timeout.into_iter().chain(aside.into_iter().flatten()).min();
        self.set_alarm(node, timeout);
        let leads = self.leads(node);
        self.facts.push(Fact::Settled { node, leads });
    }

    /// Under which terms a node passes its checks.
    fn leads(&self, node: usize) -> [Option<Term>; MOST_ELECTIONS] {
        let elections = self.nodes[node].keys.len();
        std::array::from_fn(|election| {
            (election < elections).then(|| self.nodes[node].check(election, self.real)).flatten()
        })
    }

    /// Carries out what a machine wants, puts it back, and tells when it wants to be woken.
    fn carry_out(&mut self, node: usize, mut machine: Machine, now: Instant) -> Option<Instant> {
        while let Some(request) = machine.poll_request(true, now) {
            self.send(node, request);
        }
        let mut events = Vec::new();
        while let Some(event) = machine.poll_event() {
            events.push(event);
        }
        let timeout = machine.poll_timeout();
        self.nodes[node].machine = Some(machine);
        for event in events {
            self.heed(node, event);
        }
        timeout
    }

    fn set_alarm(&mut self, node: usize, timeout: Option<Instant>) {
        if self.nodes[node].machine.is_none() {
            return;
        }
        // The same wish keeps the same alarm: other inputs make no driver later.
        if timeout == self.nodes[node].alarm_for && self.nodes[node].alarm.is_some() {
            return;
        }
        self.nodes[node].alarm_for = timeout;
        self.nodes[node].alarm = None;
        if let Some(timeout) = timeout {
            let late = self.dice.below(self.config.latency);
            let at = self.nodes[node].clock.when(timeout, self.real) + late;
            self.nodes[node].alarm = Some(at);
            self.at(at, What::Wake { node });
        }
    }

    /// What a user does when its node tells it something.
    fn heed(&mut self, node: usize, event: Event) {
        self.trace.mix(node as u64);
        self.trace.line(self.real, || format!("n{node} {event:?}"));
        let life = self.nodes[node].life;
        self.facts.push(Fact::Said { node, life, event: event.clone() });
        self.heed_at_desk(node, &event);
        self.note_leader(node, &event);
        match event {
            Event::Elected { election, .. } => {
                self.elections += 1;
                self.hurry_watch(node);
                self.nodes[node].work[election.index()] = Work::Running;
                self.spring_ambush(node, election.index());
            }
            Event::Deposed { election, .. } => {
                let election = election.index();
                self.nodes[node].work[election] = Work::Stopping;
                let margin = nanos(self.nodes[node].config.stop_margin);
                let clumsy = self.nodes[node].ails.clumsy > 0;
                let takes = self.dice.below(if clumsy { self.config.ttl * 2 } else { margin / 4 });
                self.at(self.real + takes, What::WorkStopped { node, life, election });
            }
            Event::Resigned { election, .. } | Event::Withdrawn { election } | Event::Ended { election } => {
                let election = election.index();
                if self.nodes[node].wants[election] {
                    let rest = self.config.ttl / 8 + self.dice.below(self.config.ttl);
                    self.at(self.real + rest, What::Stand { node, life, election });
                }
            }
            Event::NodeIdTaken | Event::Misconfigured | Event::Closed => {
                self.nodes[node].kill();
                let rest = self.dice.below(self.config.ttl);
                self.at(self.real + rest, What::Start { node });
            }
            _ => {}
        }
    }

    // ----- the network and the store --------------------------------------------------------

    pub(crate) fn travel(&mut self, node: usize) -> Real {
        let network = self.config.network;
        let usual = network.least + self.dice.below(network.spread);
        if self.nodes[node].ails.fades > 0 {
            return usual + self.dice.below(self.config.ttl / 8);
        }
        if self.nodes[node].ails.slow == 0 {
            return usual;
        }
        match self.dice.below(6) {
            0 => usual + self.dice.below(self.config.ttl * 3 / 2),
            1..=3 => usual + self.dice.below(self.config.ttl / 6),
            _ => usual,
        }
    }

    /// Whether nothing reaches a node any more.
    pub(crate) fn cut_off(&self, node: usize) -> bool {
        self.nodes[node].ails.deaf > 0 || self.link_is_dead(node) || self.store_ails.mute > 0
    }

    fn link_is_dead(&self, node: usize) -> bool {
        let ails = &self.nodes[node].ails;
        ails.fades > 0 && self.real >= ails.dead_from
    }

    fn send(&mut self, node: usize, request: Request) {
        let life = self.nodes[node].life;
        self.trace.mix(request.id.serial());
        self.trace.line(self.real, || format!("n{node} asks {:?}", request.verb));
        self.spring(node, &request.verb);
        let sent = self.real;
        self.send_off(node, What::Arrive { node, life, sent, request });
    }

    /// Lets something travel to the store; perhaps it is lost, perhaps it arrives twice.
    pub(crate) fn send_off(&mut self, node: usize, what: What) {
        let dead = self.link_is_dead(node);
        if self.nodes[node].ails.mute > 0 || dead || self.store_ails.hangs > 0 {
            return;
        }
        let at = self.real + self.travel(node);
        if self.nodes[node].ails.twice > 0 {
            let later = at + self.dice.below(self.config.ttl);
            self.at(later, what.clone());
        }
        self.at(at, what);
    }

    fn arrive(&mut self, node: usize, life: u32, sent: Real, request: &Request) {
        if self.store_ails.hangs > 0 {
            return;
        }
        let outcome = if self.store_ails.refuses > 0 {
            Err(Failure::Unavailable)
        } else {
            let keys = self.nodes[node].keys.clone();
            self.store.execute(node, life, &request.verb, &keys, Moment { sent, ..self.moment() })
        };
        self.trace.line(self.real, || match request.verb {
            Verb::Renew { .. } => {
                format!("store: renewal of n{node} {}", if outcome.is_ok() { "ok" } else { "no" })
            }
            _ => format!("store answers n{node}: {outcome:?}"),
        });
        self.after_store();
        if self.cut_off(node) {
            return;
        }
        let at = self.real + self.travel(node);
        let executed = self.real;
        self.at(at, What::Reply { node, life, executed, id: request.id, outcome });
    }

    /// Passes on what the store did: facts to the invariants, hints to the nodes.
    pub(crate) fn after_store(&mut self) {
        self.facts.append(&mut self.store.facts);
        let changed = std::mem::take(&mut self.store.changed);
        if self.config.capabilities.news == News::Push && self.store_ails.no_news == 0 {
            for (election, concern) in changed {
                for node in 0..self.nodes.len() {
                    if self.nodes[node].ails.deaf == 0 && !self.link_is_dead(node) {
                        let at = self.real + self.travel(node);
                        self.at(at, What::Hint { node, election, concern });
                    }
                }
            }
        }
        let rewritten = std::mem::take(&mut self.store.rewritten);
        if rewritten && self.config.capabilities.news == News::Push && self.store_ails.no_news == 0 {
            for node in 0..self.nodes.len() {
                if !self.cut_off(node) {
                    let at = self.real + self.travel(node);
                    self.at(at, What::LedgerHint { node });
                }
            }
        }
        let next = self.store.next_expiry().map(|at| at.max(self.real));
        if next != self.store_alarm
            && let Some(at) = next
        {
            self.store_alarm = next;
            self.at(at, What::StoreTimer);
        }
    }
}
