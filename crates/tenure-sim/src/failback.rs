//! Failback of a simulated node, by the rules of the library's driver (`crates/tenure/src/driver/failback.rs`): a
//! candidate that has stood behind a leader for a ttl asks it to make way, if the leader's priority is lower.

use std::time::Duration;

use tenure_core::{Event, Instant, NodeId, Plant};

use crate::fact::Fact;
use crate::world::{What, World};

/// How long the three requests may take together, at least.
const LIMIT: Duration = Duration::from_secs(1);

/// What one life of a node knows of leaders, by election.
#[derive(Debug, Default)]
pub struct Failback {
    /// Whether its user waits to lead: also while it is unhealthy, and has left the line for that.
    candidate: Vec<bool>,
    leaders: Vec<Option<NodeId>>,
    due: Vec<Option<Instant>>,
}

impl Failback {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(elections: usize) -> Self {
        Self { candidate: vec![false; elections], leaders: vec![None; elections], due: vec![None; elections] }
    }
}

/// The requests of a candidate that wants a leader to make way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What is the leader's priority, and does it live?
    Nodes,
    /// Does it still lead?
    Read,
    /// It should make way.
    Petition,
}

/// A candidate that is asking.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// Who.
    pub node: usize,
    /// In which of its lives.
    pub life: u32,
    /// For which election.
    pub election: usize,
    /// Who should make way.
    pub leader: usize,
    /// When it began, on its own clock.
    pub began: Instant,
    /// Whether it stood then.
    pub stood: bool,
    /// What it asks next.
    pub step: Step,
}

impl World {
    /// Takes note of who leads, and of how a candidacy came to its end.
    pub(crate) fn note_leader(&mut self, node: usize, event: &Event) {
        let failback = &mut self.nodes[node].failback;
        match event {
            Event::LeaderChanged { election, leader } => {
                failback.leaders[election.index()] = leader.as_ref().map(|(name, _)| name.clone());
                self.consider_failback(node, election.index());
            }
            Event::Elected { election, .. } | Event::Ended { election } | Event::Withdrawn { election } => {
                failback.candidate[election.index()] = false;
            }
            _ => {}
        }
    }

    /// A user lets its node stand. Refused where it cannot: its user will be told again later.
    pub(crate) fn stand(&mut self, node: usize, election: usize) {
        let key = self.nodes[node].keys[election];
        let mut stands = false;
        self.drive(node, |machine, now| stands = machine.stand(key, now).is_ok());
        if stands && matches!(self.nodes[node].role(election), "parked" | "waiting" | "asking") {
            self.nodes[node].stood[election] = self.real;
            self.nodes[node].failback.candidate[election] = true;
            self.consider_failback(node, election);
            self.drive(node, |_, _| {});
        }
    }

    /// A user lets its node withdraw.
    pub(crate) fn withdraw(&mut self, node: usize, election: usize) {
        let key = self.nodes[node].keys[election];
        self.nodes[node].failback.candidate[election] = false;
        self.drive(node, |machine, now| machine.withdraw(key, now));
    }

    /// Somebody leads, or this node stands: whether one should make way for the other is looked at after a ttl.
    pub(crate) fn consider_failback(&mut self, node: usize, election: usize) {
        let slot = &mut self.nodes[node];
        if !slot.config.failback {
            return;
        }
        let at = slot.clock.read(self.real) + slot.config.ttl;
        let stands = slot.failback.candidate[election];
        let led = slot.failback.leaders[election].as_ref().is_some_and(|leader| *leader != slot.name);
        slot.failback.due[election] = (stands && led).then_some(at);
    }

    /// Asks whoever is to be asked by now; says when the next is due.
    pub(crate) fn attend_failback(&mut self, node: usize, now: Instant) -> Option<Instant> {
        self.nodes[node].machine.as_ref()?;
        for election in 0..self.config.elections {
            if self.nodes[node].failback.due[election].is_some_and(|due| due <= now) {
                self.fail_back(node, election, now);
            }
        }
        self.nodes[node].failback.due.iter().flatten().copied().min()
    }

    fn fail_back(&mut self, node: usize, election: usize, began: Instant) {
        // As long as it stands behind somebody it looks again: its word may be lost, or priorities change.
        self.consider_failback(node, election);
        let stood = self.nodes[node].failback.due[election].is_some();
        if self.planted.has(Plant::FailbackAsksOnce) {
            self.nodes[node].failback.due[election] = None;
        }
        let leader = self.nodes[node].failback.leaders[election].as_ref();
        let leader = leader.and_then(|name| self.nodes.iter().position(|other| other.name == *name));
        let asks = stood || self.planted.has(Plant::FailbackWithdrawn);
        let well = self.nodes[node].ails.unwell == 0;
        if let Some(leader) = leader.filter(|_| asks && well && self.fails_back) {
            let life = self.nodes[node].life;
            self.ask_to_make_way(Asking { node, life, election, leader, began, stood, step: Step::Nodes });
        }
    }

    fn ask_to_make_way(&mut self, asking: Asking) {
        let Asking { node, election, leader, step, .. } = asking;
        self.trace
            .line(self.real, || format!("n{node} wants n{leader} to make way in e{election}: {step:?}"));
        self.send_off(node, What::MakeWay(asking));
    }

    /// A request of a candidate that fails back reaches the store.
    pub(crate) fn make_way(&mut self, asking: Asking) {
        if self.store_ails.hangs > 0 || self.store_ails.refuses > 0 || !self.fails_back {
            return;
        }
        let Asking { node, election, leader, step, .. } = asking;
        let lower = self.nodes[leader].config.priority < self.nodes[node].config.priority;
        let next = match step {
            Step::Nodes if !lower && !self.planted.has(Plant::FailbackIgnoresPriority) => return,
            Step::Nodes if !self.store.rows().any(|(_, of, live)| of == leader && live) => return,
            Step::Nodes => Step::Read,
            Step::Read if self.store.holder(election) != Some(leader) => return,
            // Otherwise the lease would be left to whoever is first. The library's driver asks all the same.
            Step::Read if !self.store.standing(election).any(|(of, _)| of == node) => return,
            Step::Read => Step::Petition,
            Step::Petition => {
                let name = self.nodes[node].name.clone();
                self.store.petition(election, Some(name));
                return self.after_store();
            }
        };
        if !self.cut_off(node) {
            let at = self.real + self.travel(node);
            self.at(at, What::MayAsk(Asking { step: next, ..asking }));
        }
    }

    /// The answer to such a request reaches its node.
    pub(crate) fn may_ask(&mut self, asking: Asking) {
        let Asking { node, election, leader, began, stood, step, .. } = asking;
        let now = self.nodes[node].now(self.real);
        if now.since(began) > self.nodes[node].config.ttl.max(LIMIT) {
            return;
        }
        if step == Step::Petition {
            self.facts.push(Fact::AskedToMakeWay { node, election, leader, stood });
        }
        self.ask_to_make_way(asking);
    }
}
