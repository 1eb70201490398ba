//! Watching an election: reads, and what they say about who leads.

use crate::capabilities::News;
use crate::election::{Candidacy, Election, Phase, Resignation, Role, Step};
use crate::event::{Event, Reason};
use crate::machine::Machine;
use crate::name::NodeId;
use crate::plants::Plant;
use crate::record::Record;
use crate::request::{Answer, ElectionKey, Failure, Flight, Verb};
use crate::silence::Look;
use crate::term::Term;
use crate::time::Instant;

impl Election {
    /// The request that an answer is awaited to.
    pub(crate) fn flight(&mut self, serial: u64) -> Option<&mut Flight> {
        let role = match &mut self.role {
            Role::Standing(Candidacy { phase: Phase::Asking { flight, .. }, .. })
            | Role::Resigning(Resignation { step: Step::Asking(flight), .. }) => Some(flight),
            _ => None,
        };
        role.into_iter().chain(&mut self.look).find(|flight| flight.serial == serial)
    }
}

impl Machine {
    /// Starts or stops telling of every change of leader, by [`Event::LeaderChanged`].
    pub fn observe(&mut self, key: ElectionKey, observed: bool, now: Instant) {
        let election = self.election(key);
        election.observed = observed;
        if observed {
            self.look(key, now);
        } else {
            election.look_at = None;
        }
        self.arm(key);
    }

    /// Reads the record for a leader or an observer.
    pub(crate) fn look(&mut self, key: ElectionKey, now: Instant) {
        let patience = self.patience();
        if self.election(key).look.is_some() {
            self.election(key).look_again = true;
            return;
        }
        let flight = self.line_up(key, Verb::Read { election: key }, patience, now);
        let election = self.election(key);
        election.look = Some(flight);
        election.look_at = None;
        self.arm(key);
    }

    /// Takes note of the terms in a record. False if the store has gone back in time.
    pub(crate) fn believe(&mut self, key: ElectionKey, seen: &Record, now: Instant) -> bool {
        let (epoch, serial) = (self.trust.epoch, self.serial);
        let election = self.election(key);
        let before = election.seen_in(epoch);
        let regressed = seen.term < before;
        if seen.term > before {
            election.seen_after = serial;
        }
        election.seen = (epoch, seen.term.max(before));
        election.highest = election.highest.max(seen.term);
        if regressed && !self.planted.has(Plant::RegressionIgnored) {
            self.distrust(now);
            self.lose_session(Reason::StoreRolledBack, now);
            return false;
        }
        true
    }

    /// Tells who leads, if that is news.
    pub(crate) fn announce(&mut self, key: ElectionKey, leader: Option<(NodeId, Term)>) {
        let election = self.election(key);
        if election.announced != leader {
            election.announced = leader.clone();
            self.events.push_back(Event::LeaderChanged { election: key, leader });
        }
    }

    pub(crate) fn election_reply(
        &mut self,
        key: ElectionKey,
        serial: u64,
        outcome: Result<Answer, Failure>,
        now: Instant,
    ) {
        let election = self.election(key);
        if let Some(flight) = election.look.filter(|flight| flight.serial == serial) {
            election.look = None;
            self.looked(key, flight, outcome, now);
        } else if matches!(election.role, Role::Resigning(_)) {
            match outcome {
                Ok(_) => self.resigned(key, now),
                Err(failure) => self.resign_failed(key, failure, now),
            }
        } else {
            self.candidate_reply(key, outcome, now);
        }
        self.arm(key);
    }

    pub(crate) fn election_timeout(&mut self, key: ElectionKey, now: Instant) {
        self.candidate_timeout(key, now);
        self.resign_timeout(key, now);
        let election = self.election(key);
        if election.look.is_some_and(|flight| flight.is_overdue(now)) {
            election.look = None;
            let again = now + self.settings.poll_every;
            self.election(key).look_at = Some(again);
        } else if election.look_at.is_some_and(|at| at <= now) {
            // Until the answer is there, the last known leader stands: unknown is not nobody.
            self.look(key, now);
        }
        self.arm(key);
    }

    fn looked(&mut self, key: ElectionKey, flight: Flight, outcome: Result<Answer, Failure>, now: Instant) {
        let mut again = std::mem::take(&mut self.election(key).look_again);
        match outcome {
            Ok(Answer::Read(seen)) if self.is_outdated(key, &seen, flight) => again = true,
            Ok(Answer::Read(seen)) => {
                self.inspect(key, &seen, now);
                self.watch(key, &seen, flight, now);
            }
            // A leader that cannot look carries on to its deadline, and looks again meanwhile.
            Ok(_) | Err(_) => {
                let at = now + self.settings.poll_every;
                self.election(key).look_at = Some(at);
            }
        }
        if again {
            self.look(key, now);
        }
    }

    /// Whether a look shows less than was learned since it was asked for: somebody who observes may stand, and
    /// be elected, before the answer is there. That the store went back is told by questions asked afterwards.
    fn is_outdated(&mut self, key: ElectionKey, seen: &Record, flight: Flight) -> bool {
        let (epoch, heeded) = (self.trust.epoch, self.planted.has(Plant::OldLookCounts));
        let election = self.election(key);
        seen.term < election.seen_in(epoch) && flight.serial <= election.seen_after && !heeded
    }

    /// What an observer makes of a record. Candidates and leaders know by themselves.
    fn watch(&mut self, key: ElectionKey, seen: &Record, flight: Flight, now: Instant) {
        let election = self.election(key);
        if !election.observed || !matches!(election.role, Role::Idle) || !self.believe(key, seen, now) {
            return;
        }
        let polled = now + self.settings.poll_every;
        let mut look_at = (self.capabilities.news == News::Poll).then_some(polled);
        let mut leader = None;
        if let Some(holder) = &seen.holder {
            let (trust, drift, planted) = (self.trust, self.settings.drift, self.planted);
            let look = Look { sent: flight.sent, received: now };
            let election = self.election(key);
            let lapses = election.silence.observe(&holder.pulse, look, trust, drift, planted);
            if lapses > now {
                leader = Some((holder.node.clone(), holder.term));
            }
            let next = lapses.max(polled);
            look_at = Some(look_at.map_or(next, |at| at.min(next)));
        }
        self.election(key).look_at = look_at;
        self.announce(key, leader);
    }
}
