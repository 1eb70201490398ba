//! What the machine tells.

use std::cmp::Reverse;
use std::sync::Arc;

use tenure_core::{
    Answer, ElectionKey, ElectionName, Event, Instant, NodeId, Reason, RequestId, Standing, Term,
};
use tenure_store::clock;

use super::Driver;
use crate::election::LeaderChange;
use crate::error::{BoxError, ElectionError, Ending, StartError};
use crate::event::NodeEvent;
use crate::office::Office;
use crate::reason;

impl Driver {
    pub(super) fn deliver(&mut self, event: Event, now: Instant) {
        match event {
            Event::Opened { session } => {
                self.tell_what_is_held();
                self.desks_opened(session);
                self.tell(NodeEvent::NodeJoined { session });
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
            Event::LeaderChanged { election, leader } => self.leader_changed(election, leader, now),
            Event::InJeopardy { deadline } => self.tell(NodeEvent::InJeopardy { left: deadline.since(now) }),
            Event::Recovered => {
                tracing::info!(target: "tenure", node = %self.info.id, "renewed in time, out of jeopardy");
            }
            Event::SessionLost { reason } => self.session_lost(reason, now),
            Event::Closed => {
                self.desks.lost(Reason::Closing);
                self.tell_what_is_held();
                self.tell(NodeEvent::NodeLeft);
                self.end(Ending::Closed);
            }
        }
    }

    fn elected(&mut self, key: ElectionKey, term: Term, now: Instant) {
        // The guard must find the deadline when the work starts. If a guard has found the old one
        // passed, this grant is void: the guard says so, and the machine hears of it right after.
        let _ = self.publish(now);
        let session = self.machine.session();
        self.leave_failback(key);
        let Some(slot) = self.slots.get_mut(key) else { return };
        let (Some(candidate), Some(session)) = (slot.candidate.take(), session) else {
            // Nobody waits for it any more.
            let _ = self.machine.resign(key, None, now);
            self.machine.stopped(key, now);
            return;
        };
        let office = Office::new(candidate.id, slot.name.clone(), term, session, Arc::clone(&self.page));
        slot.office = Some(Arc::clone(&office));
        self.roster.enter(Arc::clone(&office));
        let (election, last) = (slot.name.clone(), slot.last.clone());
        self.tell_down(&election, last);
        self.tell(NodeEvent::LeaderElected { election, term });
        // If nobody receives it, the candidacy's own end is already on its way to us.
        let _ = candidate.granted.send(Ok(office));
    }

    fn deposed(&mut self, key: ElectionKey, term: Term, reason: Reason, now: Instant) {
        let Some(slot) = self.slots.get(key) else { return };
        self.desks.deposed(&slot.name);
        if reason != Reason::Resigned {
            self.tell(NodeEvent::LeaderLost { election: slot.name.clone(), term, reason });
        }
        if let Some(office) = &slot.office {
            office.close(reason);
            let grace = office.grace().unwrap_or(self.grace);
            let grace = if reason::lease_outlives(reason) { grace } else { self.margin };
            self.cut_offs.push(Reverse((now + grace, office.id)));
        }
    }

    fn resigned(&mut self, key: ElectionKey, term: Term) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        if let Some(office) = slot.office.take() {
            self.roster.strike(office.id);
            if let Some(reason @ (Reason::Resigned | Reason::WorkFailed)) = office.reason() {
                let election = slot.name.clone();
                self.tell(NodeEvent::LeaderResigned { election, term, reason });
            }
        }
        if let Some(slot) = self.slots.get_mut(key) {
            slot.released.clear(); // dropping the senders tells those who wait
        }
        self.tidy(key);
    }

    /// The candidacy is off: because its handle withdrew it, which needs no word, or because the
    /// node is closing.
    fn withdrawn(&mut self, key: ElectionKey) {
        if self.machine.is_closing()
            && let Some(candidate) = self.slots.get_mut(key).and_then(|slot| slot.candidate.take())
        {
            self.leave_failback(key);
            let _ = candidate.granted.send(Err(ElectionError::Closed(Ending::Closed)));
        }
        self.tidy(key);
    }

    fn ended(&mut self, key: ElectionKey) {
        self.leave_failback(key);
        if let Some(slot) = self.slots.get_mut(key) {
            if let Some(candidate) = slot.candidate.take() {
                let _ = candidate.granted.send(Err(ElectionError::Ended));
            }
            let election = slot.name.clone();
            self.tell(NodeEvent::ElectionDeleted { election });
        }
        self.tidy(key);
    }

    fn leader_changed(&mut self, key: ElectionKey, leader: Option<(NodeId, Term)>, now: Instant) {
        let highest = self.machine.highest(key);
        let Some(slot) = self.slots.get_mut(key) else { return };
        let term = leader.as_ref().map_or(highest, |(_, term)| *term);
        let leader = leader.map(|(node, _)| node);
        let change = Some(LeaderChange { leader: leader.clone(), term });
        for observer in &slot.observers {
            observer.send_replace(change.clone());
        }
        let (election, last) = (slot.name.clone(), std::mem::replace(&mut slot.last, change));
        let previous = last.as_ref().and_then(|last| last.leader.clone());
        if leader.as_ref() != Some(&self.info.id) {
            self.tell_down(&election, last); // else that was told when this node was elected
        }
        self.tell(NodeEvent::LeaderChanged { election, previous, new: leader.clone(), term });
        self.tell_gates(key);
        if let Some(failback) = &mut self.failback {
            failback.leader_changed(key, leader, now);
        }
    }

    /// If another led, it leads no longer.
    fn tell_down(&self, election: &ElectionName, last: Option<LeaderChange>) {
        if let Some(LeaderChange { leader: Some(former), term }) = last
            && former != self.info.id
        {
            self.tell(NodeEvent::LeaderDown { election: election.clone(), former, term });
        }
    }

    /// The log and all subscribers hear the same.
    pub(super) fn tell(&self, event: NodeEvent) {
        event.log(&self.info.id);
        self.observe(&event);
        self.status.publish(event);
    }

    /// Tells what happens all the time, if anybody wants to know.
    pub(super) fn whisper(&self, event: impl FnOnce() -> NodeEvent) {
        if tracing::enabled!(target: "tenure", tracing::Level::DEBUG) || self.status.has_subscribers() {
            self.tell(event());
        }
    }

    /// An answer that shows who leads.
    pub(super) fn note_check<E>(&self, id: RequestId, answer: &Answer<E>) {
        let (Answer::Read(seen) | Answer::Claim(Standing::Waiting { seen })) = answer else { return };
        if let Some(slot) = id.election().and_then(|key| self.slots.get(key)) {
            self.whisper(|| NodeEvent::ElectionCheck {
                election: slot.name.clone(),
                leader: seen.holder.as_ref().map(|holder| holder.node.clone()),
                term: seen.term,
            });
        }
    }

    fn session_lost(&mut self, reason: Reason, now: Instant) {
        self.page.close(reason);
        self.desks.lost(reason);
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
        let (problem, source): (String, Option<BoxError>) =
            match (self.settings.validate_for(self.ttl), self.requests.trouble.last.take()) {
                (Err(error), _) => {
                    let (granted, asked) = (self.ttl, self.settings.ttl);
                    let problem =
                        format!("it grants a session of {granted:?} where {asked:?} was asked for: {error}");
                    (problem, Some(error.into()))
                }
                (Ok(()), Some(error)) => (error.to_string(), Some(error.into())),
                (Ok(()), None) => (String::new(), None),
            };
        tracing::error!(target: "tenure", node = %self.info.id, problem, "the store cannot be used");
        if let Some(start) = self.start.take() {
            let _ = start.opened.send(Err(StartError::Misconfigured { problem: problem.clone(), source }));
        }
        self.end(Ending::Misconfigured(problem));
    }

    /// The time for starting is over.
    pub(super) fn give_up_starting(&mut self, now: Instant) {
        if let Some(start) = self.start.take() {
            let source = self.requests.trouble.last.take();
            let problem = source.as_ref().map(ToString::to_string).unwrap_or_else(|| {
                String::from("the store is slow, or an earlier session of the node id has not lapsed")
            });
            let limit = start.limit.unwrap_or_default();
            let _ = start.opened.send(Err(StartError::TimedOut { limit, problem, source }));
            self.machine.close(now.max(clock::now()));
        }
    }
}
