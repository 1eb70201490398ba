//! The machine: one node's session and all of its elections.
//!
//! In the manner of quinn-proto: inputs are methods that take `now`; outputs are polled. After
//! every input, drain [`Machine::poll_request`] and [`Machine::poll_event`], and call
//! [`Machine::handle_timeout`] at [`Machine::poll_timeout`].

use std::collections::VecDeque;
use std::time::Duration;

use crate::capabilities::Capabilities;
use crate::dice::Dice;
use crate::election::{Candidacy, Election, Phase, Release, Role};
use crate::event::{Event, Reason};
use crate::name::NodeId;
use crate::plants::{Plant, Planted};
use crate::record::{Renewed, SessionId, StoreIdentity};
use crate::request::{
    About, Answer, ElectionKey, Failure, Flight, InLine, Request, RequestId, Verb, timeout,
};
use crate::session::Session;
use crate::settings::{Settings, SettingsError};
use crate::silence::Trust;
use crate::term::Term;
use crate::time::Instant;
use crate::timers::Timers;
use crate::wall::WallClock;

/// One node's session and elections as a pure state machine.
#[derive(Debug)]
pub struct Machine {
    pub(crate) settings: Settings,
    pub(crate) capabilities: Capabilities,
    pub(crate) node: NodeId,
    pub(crate) dice: Dice,
    pub(crate) planted: Planted,
    pub(crate) session: Session,
    pub(crate) elections: Vec<Option<Election>>,
    vacant: Vec<u32>,
    pub(crate) timers: Timers,
    pub(crate) serial: u64,
    /// Numbers claims and resignations, so that the store can tell which was overtaken.
    attempt: u64,
    pub(crate) trust: Trust,
    identity: Option<StoreIdentity>,
    /// The longest ttl seen: how long a leader that we do not know of may still lead.
    pub(crate) longest_ttl: Duration,
    /// Nothing is claimed before: the store's history is in doubt.
    pub(crate) wary_until: Instant,
    pub(crate) healthy: bool,
    pub(crate) closing: bool,
    /// Elections whose work may still run.
    pub(crate) working: u32,
    pub(crate) wall: WallClock,
    /// What is to be asked at once: about the session.
    requests: VecDeque<Request>,
    /// What is to be asked in its turn: about elections.
    line: VecDeque<InLine>,
    pub(crate) events: VecDeque<Event>,
}

/// What a driver asked for cannot be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The node's settings say that it never leads.
    #[error("this node is not eligible: it observes, but never leads")]
    NotEligible,
    /// One candidacy per node and election.
    #[error("this node already stands for the election, or leads it")]
    AlreadyStanding,
    /// The former leadership has not been given up yet: its work may still run.
    #[error("the work of this node's former leadership has not stopped yet")]
    StillStopping,
    /// There is nothing to give up.
    #[error("this node does not lead the election")]
    NotLeading,
    /// The machine has come to its end.
    #[error("the node is closed")]
    Closed,
}

impl Machine {
    /// A machine that holds nothing yet. `seed` decides session ids and jitter.
    ///
    /// # Errors
    /// [`SettingsError`] if the settings cannot work.
    pub fn new(
        node: NodeId,
        settings: Settings,
        capabilities: Capabilities,
        seed: u64,
    ) -> Result<Self, SettingsError> {
        settings.validate()?;
        Ok(Self {
            settings,
            capabilities,
            node,
            dice: Dice::new(seed),
            planted: Planted::default(),
            session: Session::Idle,
            elections: Vec::new(),
            vacant: Vec::new(),
            timers: Timers::default(),
            serial: 0,
            attempt: 0,
            trust: Trust { epoch: 0, since: Instant::ZERO },
            identity: None,
            longest_ttl: settings.ttl,
            wary_until: Instant::ZERO,
            healthy: true,
            closing: false,
            working: 0,
            wall: WallClock::default(),
            requests: VecDeque::new(),
            line: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// The same machine with a bug planted in it.
    #[must_use]
    pub fn planted(mut self, planted: Planted) -> Self {
        self.planted = planted;
        self
    }

    // ----- inputs ---------------------------------------------------------------------------

    /// Opens the session.
    pub fn start(&mut self, now: Instant) {
        if matches!(self.session, Session::Idle) {
            self.open_session(None, now);
        }
    }

    /// Adds an election, in which this node is nothing yet.
    pub fn add(&mut self) -> ElectionKey {
        if let Some(index) = self.vacant.pop() {
            self.elections[index as usize] = Some(Election::new());
            return ElectionKey(index);
        }
        self.elections.push(Some(Election::new()));
        ElectionKey(u32::try_from(self.elections.len() - 1).expect("fewer than four billion elections"))
    }

    /// Forgets an election in which this node is nothing. Says whether it did.
    pub fn remove(&mut self, key: ElectionKey) -> bool {
        let slot = &mut self.elections[key.index()];
        let idle = slot.as_ref().is_some_and(|e| matches!(e.role, Role::Idle) && !e.observed);
        if idle {
            *slot = None;
            self.vacant.push(key.0);
        }
        idle
    }

    /// What a driver remembers of an election that was removed: the highest term seen.
    pub fn remember(&mut self, key: ElectionKey, highest: Term) {
        let election = self.election(key);
        election.highest = election.highest.max(highest);
    }

    /// Takes the answer to a request. An answer that nobody waits for any more is discarded.
    pub fn reply(&mut self, id: RequestId, outcome: Result<(StoreIdentity, Answer), Failure>, now: Instant) {
        if !self.planted.has(Plant::LateReplyAccepted) {
            self.expire(now);
        }
        if !self.awaits(id) {
            return;
        }
        let outcome = match outcome {
            Ok((store, answer)) if self.recognises(store, now) => Ok(answer),
            // Another store answered for the one that we asked: to the request, that is silence.
            Ok(_) if self.awaits(id) => Err(Failure::Indeterminate),
            Ok(_) => return,
            Err(failure) => Err(failure),
        };
        match id.about {
            About::Session => self.session_reply(outcome, now),
            About::Election(key) => self.election_reply(key, id.serial, outcome, now),
        }
        self.expire(now);
    }

    /// Compares the wall clock with the boot clock. Call it before every other input: if one has moved against the
    /// other since the last confirmed renewal, by one leap or by several, the machine may have been paused. The
    /// lease is shorter by as much, and after more than a tenth of the ttl it is over.
    pub fn clock(&mut self, wall: Duration, now: Instant) {
        let leap = self.wall.leap(wall, now);
        let moved = self.wall.read(wall, now);
        let forgotten = self.planted.has(Plant::PausesForgotten);
        let moved = if forgotten { leap } else { moved };
        if self.planted.has(Plant::ClockJumpIgnored) {
            return;
        }
        if moved > self.settings.ttl / 10 {
            self.wall.begin();
            self.open_anew(now);
            self.lose_session(Reason::ClockJumped, now);
        } else if !forgotten {
            self.shorten_lease(moved);
        }
    }

    /// Gives up everything, and closes the session once all work has stopped.
    pub fn close(&mut self, now: Instant) {
        self.expire(now);
        if self.closing {
            return;
        }
        self.closing = true;
        for key in self.keys() {
            self.depose(key, Reason::Closing, now);
            self.abandon(key);
        }
        self.close_when_stopped(now);
    }

    /// A guard found the session's deadline passed before the driver could publish a later one.
    /// What was once refused stays refused, so the session is over.
    pub fn lapse(&mut self, now: Instant) {
        self.lose_session(Reason::Lapsed, now);
    }

    /// The work of an election has stopped: its lease may be given up.
    pub fn stopped(&mut self, key: ElectionKey, now: Instant) {
        self.expire(now);
        let Role::Stopping { term, release } = &mut self.election(key).role else { return };
        let (term, release) = (*term, release.take());
        self.working -= 1;
        match release {
            Some(Release { to }) if self.session.is_open() && !self.closing => {
                self.become_resigning(key, Some(term), to, now);
            }
            _ => {
                self.become_idle(key);
                self.events.push_back(Event::Resigned { election: key, term });
            }
        }
        self.close_when_stopped(now);
        self.reopen_when_stopped(now);
    }

    /// Other work hangs from the session too, such as that on partitions. As long as it runs, no other
    /// session is opened, and this one is not closed.
    pub fn occupy(&mut self) {
        self.working += 1;
    }

    /// Work that [`Machine::occupy`] told of has stopped.
    pub fn vacate(&mut self, now: Instant) {
        self.expire(now);
        self.working -= 1;
        self.close_when_stopped(now);
        self.reopen_when_stopped(now);
    }

    /// Work does not stop although it must. The session is not renewed any more, so that it lapses.
    pub fn surrender(&mut self, now: Instant) {
        self.lose_session(Reason::Unhealthy, now);
    }

    /// Something else that the same store keeps went back in time, or another store answered for it: nothing that
    /// was learned from it counts any more.
    pub fn doubt(&mut self, now: Instant) {
        self.distrust(now);
        self.lose_session(Reason::StoreRolledBack, now);
    }

    /// An answer about something else came from this store. `false`: it is not the one that we know.
    pub fn hears(&mut self, store: StoreIdentity, now: Instant) -> bool {
        self.expire(now);
        self.recognises(store, now)
    }

    /// Somebody has read, under this session, that word was left for it so often. A renewal that knows of less
    /// tells that the store went back.
    pub fn noticed(&mut self, notices: u64) {
        if let Session::Open(open) = &mut self.session {
            open.noticed = open.noticed.max(notices);
        }
    }

    /// Does whatever is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
        self.session_timeout(now);
        while let Some((at, key)) = self.timers.due(now) {
            let Some(election) = self.elections[key.index()].as_mut() else { continue };
            if election.armed == Some(at) {
                election.armed = None;
                self.election_timeout(key, now);
            }
        }
    }

    // ----- outputs --------------------------------------------------------------------------

    /// When [`Machine::handle_timeout`] wants to be called next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let renewing = self.may_renew();
        self.session.wake(renewing).into_iter().chain(self.timers.next()).min()
    }

    /// The next request for the store. Those about the session come first, and are always given;
    /// those about elections wait until there is `room` for one more, however many there are.
    pub fn poll_request(&mut self, room: bool, now: Instant) -> Option<Request> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        while room && let Some(InLine { key, serial, patience, verb }) = self.line.pop_front() {
            let election = self.elections[key.index()].as_mut();
            // What nobody wants to know any more is not asked.
            let Some(flight) = election.and_then(|election| election.flight(serial)) else { continue };
            let give_up = now + patience;
            (flight.sent, flight.give_up) = (now, Some(give_up));
            self.arm(key);
            return Some(Request { id: RequestId { serial, about: About::Election(key) }, give_up, verb });
        }
        None
    }

    /// The next event for the driver.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The term, if this node leads right now.
    #[must_use]
    pub fn check(&self, key: ElectionKey, now: Instant) -> Option<Term> {
        match self.elections[key.index()].as_ref()?.role {
            Role::Leading { term } if now < self.deadline() => Some(term),
            _ => None,
        }
    }

    /// Until when everything under the session is held; the clock's origin if there is none.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        match &self.session {
            Session::Open(open) => open.deadline,
            _ => Instant::ZERO,
        }
    }

    /// Until when nothing is taken that the store gives: it went back, and may have forgotten who has it.
    #[must_use]
    pub const fn wary_until(&self) -> Instant {
        self.wary_until
    }

    /// What the renewals of the session have told, for work that hangs from it.
    #[must_use]
    pub fn renewals(&self) -> Renewed {
        match &self.session {
            Session::Open(open) => {
                Renewed { sequence: open.confirmed, unheard: open.unheard, notices: open.notices }
            }
            _ => Renewed::default(),
        }
    }

    /// Whether [`Machine::close`] was called.
    #[must_use]
    pub const fn is_closing(&self) -> bool {
        self.closing
    }

    /// What this node is in an election, in a word.
    #[must_use]
    pub fn role(&self, key: ElectionKey) -> &'static str {
        self.elections[key.index()].as_ref().map_or("none", Election::word)
    }

    /// The highest term of an election that this node has seen.
    #[must_use]
    pub fn highest(&self, key: ElectionKey) -> Term {
        self.elections[key.index()].as_ref().map_or(Term::NONE, |election| election.highest)
    }

    /// The open session.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        match &self.session {
            Session::Open(open) => Some(open.id),
            _ => None,
        }
    }

    // ----- shared by the parts --------------------------------------------------------------

    pub(crate) fn election(&mut self, key: ElectionKey) -> &mut Election {
        self.elections[key.index()].as_mut().expect("the driver uses only keys that it was given")
    }

    pub(crate) fn keys(&self) -> Vec<ElectionKey> {
        let occupied = self.elections.iter().enumerate().filter(|(_, slot)| slot.is_some());
        occupied.map(|(index, _)| ElectionKey(u32::try_from(index).unwrap_or(u32::MAX))).collect()
    }

    pub(crate) fn send(&mut self, about: About, verb: Verb, patience: Duration, now: Instant) -> Flight {
        self.serial += 1;
        let give_up = now + patience;
        let id = RequestId { serial: self.serial, about };
        self.requests.push_back(Request { id, give_up, verb });
        Flight { serial: self.serial, sent: now, give_up: Some(give_up) }
    }

    /// Asks about an election when its turn comes; the patience with the answer begins then.
    pub(crate) fn line_up(
        &mut self,
        key: ElectionKey,
        verb: Verb,
        patience: Duration,
        now: Instant,
    ) -> Flight {
        self.serial += 1;
        self.line.push_back(InLine { key, serial: self.serial, patience, verb });
        Flight { serial: self.serial, sent: now, give_up: None }
    }

    pub(crate) fn next_attempt(&mut self) -> u64 {
        self.attempt += 1;
        self.attempt
    }

    /// How long one request may take.
    pub(crate) fn patience(&self) -> Duration {
        timeout(self.settings.ttl)
    }

    /// The pause before the next try after `failures` in a row: in proportion to the ttl, so that there is time for
    /// several, but half a minute at most, so that a node with a ttl of hours is soon back when the store is.
    pub(crate) fn pause(&mut self, failures: u32) -> Duration {
        let shortest = (self.settings.ttl / 100).min(Duration::from_secs(2));
        let pause = shortest.saturating_mul(1 << failures.min(5)).min(self.patience());
        self.dice.jitter(pause)
    }

    pub(crate) fn arm(&mut self, key: ElectionKey) {
        let Some(election) = self.elections[key.index()].as_mut() else { return };
        let wake = election.wake();
        if wake != election.armed {
            election.armed = wake;
            if let Some(at) = wake {
                self.timers.arm(at, key);
            }
            let elections = &self.elections;
            self.timers.prune(|key| elections[key.index()].as_ref().and_then(|election| election.armed));
        }
    }

    /// Everything believed about the store's past is void. Leaders that we do not know of may
    /// still lead, for as long as the longest ttl.
    pub(crate) fn distrust(&mut self, now: Instant) {
        self.trust = Trust { epoch: self.trust.epoch + 1, since: now };
        self.wary_until = now + self.longest_ttl;
        for key in self.keys() {
            self.look_anew(key, now);
        }
    }

    fn recognises(&mut self, store: StoreIdentity, now: Instant) -> bool {
        match self.identity.replace(store) {
            None => {
                self.trust.since = now;
                true
            }
            Some(known) if known == store || self.planted.has(Plant::StoreChangeIgnored) => true,
            Some(_) => {
                self.distrust(now);
                self.lose_session(Reason::StoreChanged, now);
                false
            }
        }
    }

    /// Whether a candidate has asked this, and waits for the answer. What an observer looks at is nothing to it.
    #[must_use]
    pub fn is_candidates(&self, id: RequestId) -> bool {
        let About::Election(key) = id.about else { return false };
        let role = self.elections[key.index()].as_ref().map(|election| &election.role);
        matches!(role, Some(Role::Standing(Candidacy { phase: Phase::Asking { flight, .. }, .. }))
            if flight.serial == id.serial)
    }

    /// Whether the answer to this request still matters.
    #[must_use]
    pub fn awaits(&mut self, id: RequestId) -> bool {
        match id.about {
            About::Session => self.session.awaits(id.serial),
            About::Election(key) => self.elections[key.index()]
                .as_mut()
                .is_some_and(|election| election.flight(id.serial).is_some()),
        }
    }
}
