//! Failback of a simulated node: the real [`Failback`], driven as the library's driver does
//! (`crates/tenure/src/driver/failback.rs`).

use tenure_core::{
    ElectionKey, Event, Failback, FailbackAttempt, FailbackRequest, Instant, Machine, NodeId, NodeState,
    Planted, Record,
};

use crate::config::NodeConfig;
use crate::fact::Fact;
use crate::world::{What, World};

/// The failback of a node that starts, if it is one that fails back.
#[must_use]
pub fn of(node: &NodeConfig, name: &NodeId, planted: Planted) -> Option<Failback> {
    node.failback.then(|| Failback::new(name.clone(), node.priority, node.ttl).planted(planted))
}

/// A candidate that is asking.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Who.
    pub node: usize,
    /// In which of its lives.
    pub life: u32,
    /// Whether its user waited to lead when it began.
    pub stood: bool,
    /// Whom it asks to make way, and what it asks the store next.
    pub attempt: FailbackAttempt,
}

/// What the store answers to one of its requests.
#[derive(Clone, Debug)]
pub enum Listed {
    /// Every node with its priority.
    Nodes(Vec<(NodeId, NodeState, i32)>),
    /// The record of the election.
    Record(Record),
}

impl World {
    /// Takes note of who leads, and of how a candidacy came to its end.
    pub(crate) fn note_leader(&mut self, node: usize, event: &Event) {
        match event {
            Event::LeaderChanged { election, leader } => {
                let now = self.nodes[node].now(self.real);
                let leader = leader.as_ref().map(|(name, _)| name.clone());
                if let Some(failback) = &mut self.nodes[node].failback {
                    failback.leader_changed(*election, leader, now);
                }
            }
            Event::Elected { election, .. } | Event::Ended { election } => self.leave(node, *election),
            // Otherwise its user has withdrawn, which was noted then; it may stand again by now.
            Event::Withdrawn { election }
                if self.nodes[node].machine.as_ref().is_some_and(Machine::is_closing) =>
            {
                self.leave(node, *election);
            }
            _ => {}
        }
    }

    /// A user lets its node stand. Refused where it cannot: its user will be told again later.
    pub(crate) fn stand(&mut self, node: usize, election: usize) {
        let key = self.nodes[node].keys[election];
        let mut stands = false;
        self.drive(node, |machine, now| stands = machine.stand(key, now).is_ok());
        if !stands || self.nodes[node].machine.is_none() {
            return;
        }
        if matches!(self.nodes[node].role(election), "parked" | "waiting" | "asking") {
            self.nodes[node].stood[election] = self.real;
        }
        self.nodes[node].waits[election] = true;
        let now = self.nodes[node].now(self.real);
        if let Some(failback) = &mut self.nodes[node].failback {
            failback.stand(key, now);
        }
        self.drive(node, |_, _| {});
    }

    /// A user lets its node withdraw.
    pub(crate) fn withdraw(&mut self, node: usize, election: usize) {
        let key = self.nodes[node].keys[election];
        self.leave(node, key);
        self.drive(node, |machine, now| machine.withdraw(key, now));
    }

    /// Its user does not wait to lead any more.
    fn leave(&mut self, node: usize, election: ElectionKey) {
        self.nodes[node].waits[election.index()] = false;
        if let Some(failback) = &mut self.nodes[node].failback {
            failback.leave(election);
        }
    }

    /// Asks whoever is to be asked by now; says when the next is due.
    pub(crate) fn attend_failback(&mut self, node: usize, now: Instant) -> Option<Instant> {
        self.nodes[node].machine.as_ref()?;
        let healthy = self.nodes[node].ails.unwell == 0;
        self.nodes[node].failback.as_mut()?.handle_timeout(healthy, now);
        while let Some(attempt) = self.nodes[node].failback.as_mut()?.poll_attempt() {
            let stood = self.nodes[node].waits[attempt.election().index()];
            let life = self.nodes[node].life;
            if self.fails_back {
                self.ask_to_make_way(Asking { node, life, stood, attempt });
            }
        }
        self.nodes[node].failback.as_ref()?.poll_timeout()
    }

    fn ask_to_make_way(&mut self, asking: Asking) {
        let Asking { node, attempt, .. } = &asking;
        let (node, leader, election) = (*node, attempt.leader(), attempt.election().index());
        let request = attempt.request();
        self.trace
            .line(self.real, || format!("n{node} wants {leader} to make way in e{election}: {request:?}"));
        self.send_off(node, What::MakeWay(asking));
    }

    /// A request of a candidate that fails back reaches the store.
    pub(crate) fn make_way(&mut self, asking: Asking) {
        if self.store_ails.hangs > 0 || self.store_ails.refuses > 0 || !self.fails_back {
            return;
        }
        let (node, election) = (asking.node, asking.attempt.election().index());
        let answer = match asking.attempt.request() {
            FailbackRequest::Nodes => {
                let listed = self.store.nodes(self.moment()).into_iter().filter_map(|seen| {
                    let node = self.nodes.iter().find(|node| node.name == seen.node)?;
                    Some((seen.node, seen.state, node.config.priority))
                });
                Listed::Nodes(listed.collect())
            }
            FailbackRequest::Read => Listed::Record(self.store.record(election, self.moment())),
            FailbackRequest::Petition => {
                let name = self.nodes[node].name.clone();
                self.store.petition(election, Some(name));
                return self.after_store();
            }
        };
        self.after_store();
        if !self.cut_off(node) {
            let at = self.real + self.travel(node);
            self.at(at, What::MayAsk(asking, Box::new(answer)));
        }
    }

    /// The answer to such a request reaches its node.
    pub(crate) fn may_ask(&mut self, mut asking: Asking, answer: Listed) {
        let now = self.nodes[asking.node].now(self.real);
        let attempt = &mut asking.attempt;
        let goes_on = match answer {
            Listed::Nodes(nodes) => {
                attempt.nodes(nodes.iter().map(|(node, state, priority)| (node, *state, *priority)), now)
            }
            Listed::Record(record) => attempt.record(&record, now),
        };
        if !goes_on {
            return;
        }
        if attempt.request() == FailbackRequest::Petition {
            let leader = self.nodes.iter().position(|node| node.name == *attempt.leader());
            let (node, election, stood) = (asking.node, attempt.election().index(), asking.stood);
            if let Some(leader) = leader {
                self.facts.push(Fact::AskedToMakeWay { node, election, leader, stood });
            }
        }
        self.ask_to_make_way(asking);
    }
}
