//! What the machine tells.

use std::cmp::Reverse;
use std::sync::Arc;

use tenure_core::{ElectionKey, Event, Instant, NodeId, Reason, Term};
use tenure_store::clock;

use super::Driver;
use crate::election::LeaderChange;
use crate::error::{ElectionError, Ending, StartError};
use crate::office::Office;
use crate::reason;

impl Driver {
    pub(super) fn deliver(&mut self, event: Event, now: Instant) {
        match event {
            Event::Opened { session } => {
                self.tell_what_is_held();
                tracing::info!(target: "tenure", node = %self.info.id, %session, "node_joined");
                if let Some(start) = self.start.take() {
                    let _ = start.opened.send(Ok(()));
                }
            }
            Event::Occupied { pulse, until } => tracing::info!(
                target: "tenure",
                node = %self.info.id,
                session = %pulse.stamp.session,
                left = ?until.since(now),
                "an earlier session of this node id has not lapsed yet: waiting until it has",
            ),
            Event::NodeIdTaken => self.node_id_taken(),
            Event::Misconfigured => self.misconfigured(),
            Event::Elected { election, term } => self.elected(election, term, now),
            Event::Deposed { election, term, reason } => self.deposed(election, term, reason, now),
            Event::Resigned { election, term } => self.resigned(election, term),
            Event::Withdrawn { election } => self.withdrawn(election),
            Event::Ended { election } => self.ended(election),
            Event::LeaderChanged { election, leader } => self.leader_changed(election, leader),
            Event::InJeopardy { deadline } => tracing::warn!(
                target: "tenure",
                node = %self.info.id,
                left = ?deadline.since(now),
                "in_jeopardy",
            ),
            Event::Recovered => {
                tracing::info!(target: "tenure", node = %self.info.id, "renewed in time, out of jeopardy");
            }
            Event::SessionLost { reason } => self.session_lost(reason, now),
            Event::Closed => {
                self.tell_what_is_held();
                tracing::info!(target: "tenure", node = %self.info.id, "node_left");
                self.end(Ending::Closed);
            }
        }
    }

    fn elected(&mut self, key: ElectionKey, term: Term, now: Instant) {
        // The guard must find the deadline when the work starts. If a guard has found the old one
        // passed, this grant is void: the guard says so, and the machine hears of it right after.
        let _ = self.publish(now);
        let session = self.machine.session();
        let Some(slot) = self.slots.get_mut(key) else { return };
        let (Some(candidate), Some(session)) = (slot.candidate.take(), session) else {
            // Nobody waits for it any more.
            let _ = self.machine.resign(key, None, now);
            self.machine.stopped(key, now);
            return;
        };
        tracing::info!(
            target: "tenure", election = %slot.name, node = %self.info.id, term = term.number(), "leader_elected",
        );
        let office = Office::new(candidate.id, slot.name.clone(), term, session, Arc::clone(&self.page));
        slot.office = Some(Arc::clone(&office));
        self.roster.enter(Arc::clone(&office));
        // If nobody receives it, the candidacy's own end is already on its way to us.
        let _ = candidate.granted.send(Ok(office));
    }

    fn deposed(&mut self, key: ElectionKey, term: Term, reason: Reason, now: Instant) {
        let Some(slot) = self.slots.get(key) else { return };
        if reason != Reason::Resigned {
            tracing::warn!(
                target: "tenure", election = %slot.name, node = %self.info.id, term = term.number(),
                reason = reason.name(), "leader_lost",
            );
        }
        if let Some(office) = &slot.office {
            office.close(reason);
            let grace = if reason::lease_outlives(reason) { self.grace } else { self.margin };
            self.cut_offs.push(Reverse((now + grace, office.id)));
        }
    }

    fn resigned(&mut self, key: ElectionKey, term: Term) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        if let Some(office) = slot.office.take() {
            self.roster.strike(office.id);
            if office.reason() == Some(Reason::Resigned) {
                tracing::info!(
                    target: "tenure", election = %slot.name, node = %self.info.id, term = term.number(),
                    "leader_resigned",
                );
            }
        }
        slot.released.clear(); // dropping the senders tells those who wait
        self.slots.tidy(key, &mut self.machine);
    }

    /// The candidacy is off: because its handle withdrew it, which needs no word, or because the
    /// node is closing.
    fn withdrawn(&mut self, key: ElectionKey) {
        if self.machine.is_closing()
            && let Some(candidate) = self.slots.get_mut(key).and_then(|slot| slot.candidate.take())
        {
            let _ = candidate.granted.send(Err(ElectionError::Closed(Ending::Closed)));
        }
        self.slots.tidy(key, &mut self.machine);
    }

    fn ended(&mut self, key: ElectionKey) {
        if let Some(slot) = self.slots.get_mut(key) {
            tracing::info!(target: "tenure", election = %slot.name, node = %self.info.id, "election_deleted");
            if let Some(candidate) = slot.candidate.take() {
                let _ = candidate.granted.send(Err(ElectionError::Ended));
            }
        }
        self.slots.tidy(key, &mut self.machine);
    }

    fn leader_changed(&mut self, key: ElectionKey, leader: Option<(NodeId, Term)>) {
        let highest = self.machine.highest(key);
        let Some(slot) = self.slots.get_mut(key) else { return };
        let term = leader.as_ref().map_or(highest, |(_, term)| *term);
        let leader = leader.map(|(node, _)| node);
        tracing::info!(
            target: "tenure", election = %slot.name, node = %self.info.id, term = term.number(),
            previous = slot.last.as_ref().and_then(|last| last.leader.as_ref()).map(NodeId::as_str),
            new = leader.as_ref().map(NodeId::as_str), "leader_changed",
        );
        let change = Some(LeaderChange { leader, term });
        for observer in &slot.observers {
            observer.send_replace(change.clone());
        }
        slot.last = change;
    }

    fn session_lost(&mut self, reason: Reason, now: Instant) {
        self.page.close(reason);
        self.tell_what_is_held();
        tracing::warn!(target: "tenure", node = %self.info.id, reason = reason.name(), "the session is over");
        // Whatever still stops has only the margin left; counted from the deadline, if that is
        // what ended the session.
        let from = if reason == Reason::Lapsed { now.min(self.published) } else { now };
        for office in self.roster.all() {
            self.cut_offs.push(Reverse((from + self.margin, office.id)));
        }
        self.published = Instant::ZERO;
        self.watchdog.expect(Instant::ZERO);
    }

    // ----- ends -----------------------------------------------------------------------------

    fn node_id_taken(&mut self) {
        let node = self.info.id.clone();
        tracing::error!(target: "tenure", %node, "another live process uses this node id");
        if let Some(start) = self.start.take() {
            let _ = start.opened.send(Err(StartError::NodeIdTaken { node: node.clone() }));
        }
        self.end(Ending::NodeIdTaken(node));
    }

    fn misconfigured(&mut self) {
        let granted = self.settings.validate_for(self.ttl).err().map(|error| {
            format!(
                "it grants a session of {:?} where {:?} was asked for: {error}",
                self.ttl, self.settings.ttl
            )
        });
        let problem = granted.or_else(|| self.requests.trouble.last.take()).unwrap_or_default();
        tracing::error!(target: "tenure", node = %self.info.id, problem, "the store cannot be used");
        if let Some(start) = self.start.take() {
            let _ = start.opened.send(Err(StartError::Misconfigured { problem: problem.clone() }));
        }
        self.end(Ending::Misconfigured(problem));
    }

    /// The time for starting is over.
    pub(super) fn give_up_starting(&mut self, now: Instant) {
        if let Some(start) = self.start.take() {
            let problem = self.requests.trouble.last.clone().unwrap_or_else(|| {
                String::from("the store is slow, or an earlier session of the node id has not lapsed")
            });
            let limit = start.limit.unwrap_or_default();
            let _ = start.opened.send(Err(StartError::TimedOut { limit, problem }));
            self.machine.close(now.max(clock::now()));
        }
    }
}
