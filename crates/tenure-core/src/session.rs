//! The session: opened once, renewed by one request per interval, and never revived.

use crate::election::{Election, Phase, Role, Step};
use crate::event::{Event, Reason};
use crate::machine::Machine;
use crate::plants::Plant;
use crate::record::{Opening, Renewal, Sequence, SessionId, Stamp};
use crate::request::{About, Answer, ElectionKey, Failure, Flight, LONGEST_TIMEOUT, Verb, timeout};
use crate::silence::{LATE, Look, Silence};
use crate::time::Instant;
use std::time::Duration;

/// How soon a session that is in the way is looked at again, the first time.
const SOON: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub(crate) enum Session {
    /// Not started.
    Idle,
    /// Asks for a session until it has one.
    Opening(Attempt),
    /// Has one.
    Open(Open),
    /// Had one. The next is opened once all work under it has stopped.
    Lost { id: SessionId },
    /// Gives it up.
    Closing { id: SessionId, deadline: Instant, step: Step, failures: u32 },
    /// At its end.
    Closed,
}

#[derive(Debug)]
pub(crate) struct Attempt {
    id: SessionId,
    sequence: Sequence,
    supersedes: Option<SessionId>,
    /// A session of the same node id, to be retired.
    over: Option<Stamp>,
    rival: Silence,
    rival_first: Option<Stamp>,
    step: Step,
    failures: u32,
}

#[derive(Debug)]
pub(crate) struct Open {
    pub id: SessionId,
    ttl: Duration,
    pub deadline: Instant,
    /// By how much the deadline was brought forward for pauses that the boot clock did not count.
    paused: Duration,
    sequence: Sequence,
    pub confirmed: Sequence,
    /// The last renewal that was answered after another had been applied without an answer.
    pub unheard: Sequence,
    pub notices: u64,
    /// How much word was left that anybody under this session has read; now, and when the renewal was sent.
    pub noticed: u64,
    noticed_sent: u64,
    /// Terms granted under this session that we were told of; now, and when the renewal was sent.
    grants: u64,
    grants_sent: u64,
    /// Terms granted under this session that we were not told of by a claim, and have asked for since.
    unclaimed: u64,
    /// When the next renewal, or the next try of it, starts.
    next: Instant,
    flight: Option<Flight>,
    /// Failed tries of the current renewal.
    failed: u32,
}

impl Open {
    /// A claim was told of a term that was granted under this session.
    pub fn granted(&mut self) {
        self.grants += 1;
        // It may be one that we have asked for; another may be passed on before the next renewal.
        self.unclaimed = self.unclaimed.saturating_sub(1);
    }
}

impl Session {
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }

    pub fn awaits(&self, serial: u64) -> bool {
        match self {
            Self::Opening(Attempt { step, .. }) | Self::Closing { step, .. } => step.is(serial),
            Self::Open(open) => open.flight.is_some_and(|flight| flight.serial == serial),
            Self::Idle | Self::Lost { .. } | Self::Closed => false,
        }
    }

    pub fn wake(&self, renewing: bool) -> Option<Instant> {
        match self {
            Self::Opening(attempt) => attempt.step.wake(),
            Self::Open(open) => {
                let next = renewing.then_some(open.next);
                let renewal = open.flight.map_or(next, |flight| flight.give_up);
                Some(renewal.map_or(open.deadline, |at| at.min(open.deadline)))
            }
            Self::Closing { deadline, step, .. } => step.wake().into_iter().chain([*deadline]).min(),
            Self::Idle | Self::Lost { .. } | Self::Closed => None,
        }
    }
}

impl Machine {
    // ----- opening --------------------------------------------------------------------------

    pub(crate) fn open_session(&mut self, supersedes: Option<SessionId>, now: Instant) {
        let mut id = (u128::from(self.dice.roll()) << 64) | u128::from(self.dice.roll());
        if self.planted.has(Plant::RestartInheritsSession) && matches!(self.session, Session::Idle) {
            id = self.node.as_str().bytes().fold(1, |hash, byte| hash * 257 + u128::from(byte));
        }
        self.session = Session::Opening(Attempt {
            id: SessionId::from_u128(id),
            sequence: 0,
            supersedes,
            over: None,
            rival: Silence::default(),
            rival_first: None,
            step: Step::Pausing { until: now },
            failures: 0,
        });
        self.ask_to_open(now);
    }

    fn ask_to_open(&mut self, now: Instant) {
        let ttl = self.settings.ttl;
        let Session::Opening(attempt) = &mut self.session else { return };
        self.wall.begin();
        attempt.sequence += 1;
        let verb = Verb::Open {
            session: attempt.id,
            sequence: attempt.sequence,
            ttl,
            supersedes: attempt.supersedes,
            over: attempt.over,
        };
        let flight = self.send(About::Session, verb, (ttl / 2).min(LONGEST_TIMEOUT), now);
        if let Session::Opening(attempt) = &mut self.session {
            attempt.step = Step::Asking(flight);
        }
    }

    /// The clock that the answer would be timed by may have stood still: whatever it says may be long over. Asked
    /// again, the store tells what is true now.
    pub(crate) fn open_anew(&mut self, now: Instant) {
        if let Session::Opening(Attempt { step: Step::Asking(_), .. }) = self.session
            && !self.planted.has(Plant::PartitionsOpenedAsleep)
        {
            self.opening_failed(Failure::Indeterminate, now);
        }
    }

    fn opening_failed(&mut self, failure: Failure, now: Instant) {
        let Session::Opening(attempt) = &mut self.session else { return };
        match failure {
            Failure::Misconfigured => {
                self.session = Session::Closed;
                self.events.push_back(Event::Misconfigured);
            }
            // Our own earlier attempt was opened, and retired before we heard of it.
            Failure::SessionLost => {
                let supersedes = attempt.supersedes;
                self.open_session(supersedes, now);
            }
            Failure::Unavailable | Failure::Indeterminate => {
                attempt.failures += 1;
                let failures = attempt.failures;
                let until = now + self.pause(failures);
                if let Session::Opening(attempt) = &mut self.session {
                    attempt.step = Step::Pausing { until };
                }
            }
        }
    }

    fn opened(&mut self, flight: Flight, opening: &Opening, now: Instant) {
        let Session::Opening(attempt) = &self.session else { return };
        match *opening {
            Opening::Opened { ttl } => {
                let (id, sequence) = (attempt.id, attempt.sequence);
                if self.settings.validate_for(ttl).is_err() {
                    self.session = Session::Closed;
                    self.events.push_back(Event::Misconfigured);
                    return;
                }
                self.longest_ttl = self.longest_ttl.max(ttl);
                let from = self.counts_from(flight, now);
                let paused = self.wall.moved();
                let deadline = from + self.lease(ttl) - paused;
                let next = flight.sent + self.renew_every();
                let (confirmed, unheard, failed) = (sequence, 0, 0);
                let (notices, noticed, noticed_sent, grants, grants_sent, unclaimed) = (0, 0, 0, 0, 0, 0);
                let flight = None;
                self.session = Session::Open(Open {
                    id,
                    ttl,
                    deadline,
                    paused,
                    sequence,
                    confirmed,
                    unheard,
                    notices,
                    noticed,
                    noticed_sent,
                    grants,
                    grants_sent,
                    unclaimed,
                    next,
                    flight,
                    failed,
                });
                self.events.push_back(Event::Opened { session: id });
                self.unpark(now);
            }
            Opening::Occupied { pulse } => self.occupied(flight, pulse, now),
        }
    }

    /// Another session has our node id: our own former life, or a second process. Silence means
    /// the one, signs of life mean the other.
    fn occupied(&mut self, flight: Flight, pulse: crate::record::Pulse, now: Instant) {
        let (trust, drift, planted, poll) =
            (self.trust, self.settings.drift, self.planted, self.settings.ttl / 6);
        let Session::Opening(attempt) = &mut self.session else { return };
        let first = *attempt.rival_first.get_or_insert(pulse.stamp);
        // A renewal that the former process sent with its last breath may still arrive; two may not.
        let renewed = first.session == pulse.stamp.session && pulse.stamp.sequence >= first.sequence + 2;
        if renewed {
            self.session = Session::Closed;
            self.events.push_back(Event::NodeIdTaken);
            return;
        }
        let look = Look { sent: flight.sent, received: now };
        let lapses = attempt.rival.observe(&pulse, look, trust, drift, planted);
        // Soon at first: whoever sees our former self dead may be closing its session right now.
        let soon = (self.settings.ttl / 100).min(SOON).saturating_mul(1 << attempt.sequence.min(16));
        // At the very instant at which it must have lapsed; a store that judges otherwise is asked again.
        let until = if lapses > now { lapses.min(now + poll.min(soon)) } else { now + poll / 16 };
        attempt.over = (lapses <= until).then_some(pulse.stamp);
        attempt.step = Step::Pausing { until };
        self.longest_ttl = self.longest_ttl.max(pulse.ttl);
        self.events.push_back(Event::Occupied { pulse, until: lapses });
    }

    // ----- renewing -------------------------------------------------------------------------

    /// A node whose application is unwell lets its session lapse rather than renew it for work
    /// that does not stop.
    pub(crate) fn may_renew(&self) -> bool {
        self.healthy || self.working == 0
    }

    fn lease(&self, ttl: Duration) -> Duration {
        let mut settings = self.settings;
        if self.planted.has(Plant::NoStopMargin) {
            settings.stop_margin = Duration::ZERO;
        }
        if self.planted.has(Plant::DriftIgnored) {
            return ttl - settings.stop_margin;
        }
        settings.lease(ttl)
    }

    fn renew_every(&self) -> Duration {
        if self.planted.has(Plant::RenewalTooLate) {
            return self.settings.lease(self.settings.ttl).mul_f64(0.97);
        }
        self.settings.renew_every
    }

    /// A lease counts from before its request left: the reply may have taken any time.
    fn counts_from(&self, flight: Flight, now: Instant) -> Instant {
        if self.planted.has(Plant::DeadlineFromReply) { now } else { flight.sent }
    }

    /// The wall clock has moved so far against the boot clock since the lease began. If that was a pause, it has used
    /// up the lease all the same, so the deadline comes earlier by as much. Two clocks cannot be read at the same
    /// instant, so a difference that is small against the stop margin is left to that.
    pub(crate) fn shorten_lease(&mut self, moved: Duration) {
        let least = (self.settings.ttl / 100).min(self.settings.stop_margin / 10);
        if let Session::Open(open) = &mut self.session
            && moved > open.paused + least
        {
            open.deadline = open.deadline - (moved - open.paused);
            open.paused = moved;
        }
    }

    fn renew(&mut self, now: Instant) {
        let Session::Open(open) = &mut self.session else { return };
        let left = open.deadline.since(now);
        // Half of what is left, and half of that again: without an end, a storm before the deadline.
        if left < open.ttl / 50 {
            open.next = open.deadline;
            return;
        }
        self.wall.renewal_sent();
        open.sequence += 1;
        (open.grants_sent, open.noticed_sent) = (open.grants, open.noticed);
        let patience = timeout(open.ttl).min(left / 2);
        let session = open.id;
        let verb = Verb::Renew { session, sequence: open.sequence, attempt: open.failed + 1 };
        let flight = self.send(About::Session, verb, patience, now);
        if let Session::Open(open) = &mut self.session {
            open.flight = Some(flight);
        }
        if self.planted.has(Plant::RenewsEachElection) {
            for _ in 0..self.working {
                let Session::Open(open) = &mut self.session else { return };
                open.sequence += 1;
                let verb = Verb::Renew { session, sequence: open.sequence, attempt: 1 };
                self.send(About::Session, verb, patience, now);
            }
        }
    }

    fn renewed(&mut self, flight: Flight, renewal: Renewal<ElectionKey>, now: Instant) {
        let from = self.counts_from(flight, now);
        let every = self.renew_every();
        let Session::Open(open) = &self.session else { return };
        let lease = self.lease(open.ttl);
        let Session::Open(open) = &mut self.session else { return };
        let forgot = renewal.previous < open.confirmed
            || renewal.grants < open.grants_sent
            || renewal.notices < open.noticed_sent;
        if forgot && !self.planted.has(Plant::RegressionIgnored) {
            self.distrust(now);
            self.lose_session(Reason::StoreRolledBack, now);
            return;
        }
        if renewal.previous > open.confirmed {
            open.unheard = open.sequence;
        }
        self.wall.renewal_confirmed();
        open.paused = self.wall.moved();
        open.confirmed = open.sequence;
        open.deadline = (from + lease - open.paused).max(open.deadline);
        open.next = flight.sent + every;
        let recovered = std::mem::take(&mut open.failed) > 0;
        let noticed = renewal.notices > open.notices;
        open.notices = renewal.notices;
        if recovered && !self.planted.has(Plant::JeopardyUnsaid) {
            self.events.push_back(Event::Recovered);
        }
        if noticed {
            for key in self.keys() {
                self.look_if_leading(key, now);
            }
        }
        self.hear_of_elections(renewal.waits_for, flight, now);
        self.time_renewal(flight.sent, every);
        self.ask_for_grants(renewal.grants, now);
    }

    /// A node that waits to lead renews its session right after a pulse of a leader is expected: so its renewals show
    /// it that pulse fresh, and the less of an age has to be believed, the sooner a silent leader is succeeded.
    fn time_renewal(&mut self, sent: Instant, every: Duration) {
        if self.working > 0 {
            return;
        }
        let late = (self.settings.ttl / 500).max(LATE).min(self.settings.ttl / 100);
        // If it is elected meanwhile, there must be time for a second try.
        let lease = self.lease(self.settings.ttl);
        let longest = (every + every / 10).min(lease.saturating_sub(self.settings.ttl / 6 + late)).max(every);
        let told = self.elections.iter().flatten().filter_map(Election::told);
        let rhythms = told.filter_map(Silence::rhythm).filter(|rhythm| rhythm.keeps_step_with(every));
        let pulses = rhythms.map(|rhythm| rhythm.last_until(sent + longest));
        let Some(pulse) = pulses.max() else { return };
        // Out of step with it, a shorter interval brings the next ones closer.
        let next = if pulse >= sent + every / 2 { pulse + late } else { sent + every * 3 / 4 };
        if let Session::Open(open) = &mut self.session {
            open.next = next;
        }
    }

    /// The store has granted more terms to this session than its claims were told of: whoever gave a lease up has
    /// passed it on to us, and the notification was lost or is late. So all candidates ask again, once for each such term.
    fn ask_for_grants(&mut self, granted: u64, now: Instant) {
        let Session::Open(open) = &mut self.session else { return };
        let untold = granted.saturating_sub(open.grants);
        open.unclaimed = open.unclaimed.min(untold);
        if untold == open.unclaimed || self.planted.has(Plant::GrantUnnoticed) {
            return;
        }
        open.unclaimed = untold;
        // Also those that wait for an answer: it may have been given before the lease was passed on. And the others at
        // once: an answer under way may be about another lease. But whoever was told to stand in line was granted none.
        for key in self.keys() {
            if matches!(&self.election(key).role, Role::Standing(candidacy) if !candidacy.told) {
                self.hint_named(key, now);
            }
        }
    }

    fn renewal_failed(&mut self, failure: Failure, timed_out: bool, now: Instant) {
        if failure == Failure::SessionLost && !self.planted.has(Plant::SessionLossIgnored) {
            self.session_gone(now);
            return;
        }
        if self.planted.has(Plant::StepsDownOnFailure) {
            self.lose_session(Reason::Lapsed, now);
            return;
        }
        let every = self.settings.renew_every;
        let Session::Open(open) = &mut self.session else { return };
        open.failed += 1;
        let first = open.failed == 1;
        let left = open.deadline.since(now);
        // A time-out has cost its time already; a quick refusal would otherwise spin.
        let pause = (open.ttl / 30).min(left / 8);
        if self.planted.has(Plant::FailureExtendsDeadline) {
            open.deadline = open.deadline + open.ttl / 6;
        }
        let deadline = open.deadline;
        let next = if timed_out { now } else { now + self.dice.jitter(pause) };
        let next = if self.planted.has(Plant::RenewalNotRetried) { now + every } else { next };
        if let Session::Open(open) = &mut self.session {
            open.next = next;
        }
        if first && !self.planted.has(Plant::JeopardyUnsaid) {
            self.events.push_back(Event::InJeopardy { deadline });
        }
    }

    // ----- losing ---------------------------------------------------------------------------

    /// Ends the session if its deadline has passed. Every input calls this first, so that nothing
    /// that arrives late can revive it.
    pub(crate) fn expire(&mut self, now: Instant) {
        match &self.session {
            Session::Open(open) if now >= open.deadline => self.lose_session(Reason::Lapsed, now),
            Session::Closing { deadline, .. } if now >= *deadline => self.closed(now),
            _ => {}
        }
    }

    /// The store says that the session is over, before its time: nobody may have retired it yet. So
    /// the store is not what it was, and what we know of it is void.
    pub(crate) fn session_gone(&mut self, now: Instant) {
        if self.session.is_open() {
            self.distrust(now);
            self.lose_session(Reason::SessionLost, now);
        }
    }

    /// The session is over: whatever hung from it is stopped, and it is never used again.
    pub(crate) fn lose_session(&mut self, reason: Reason, now: Instant) {
        let Session::Open(open) = &self.session else { return };
        self.session = Session::Lost { id: open.id };
        self.events.push_back(Event::SessionLost { reason });
        for key in self.keys() {
            self.depose(key, reason, now);
            match &mut self.election(key).role {
                Role::Stopping { release, .. } => *release = None,
                Role::Standing(candidacy) => candidacy.phase = Phase::Parked,
                Role::Resigning(_) => self.resigned(key, now),
                Role::Idle | Role::Leading { .. } => {}
            }
            self.arm(key);
        }
        self.close_when_stopped(now);
        self.reopen_when_stopped(now);
    }

    pub(crate) fn reopen_when_stopped(&mut self, now: Instant) {
        let early = self.planted.has(Plant::ReopensBeforeJoin);
        if let Session::Lost { id } = self.session
            && (self.working == 0 || early)
            && self.healthy
            && !self.closing
        {
            self.open_session(Some(id), now);
        }
    }

    // ----- closing --------------------------------------------------------------------------

    pub(crate) fn close_when_stopped(&mut self, now: Instant) {
        let early = self.planted.has(Plant::ClosesBeforeJoin);
        if !self.closing || (self.working > 0 && !early) {
            return;
        }
        match self.session {
            Session::Open(Open { id, deadline, .. }) => {
                let step = Step::Pausing { until: now };
                self.session = Session::Closing { id, deadline, step, failures: 0 };
                self.ask_to_close(now);
            }
            // A session that was lost, or that may have been opened without our knowing, is still
            // there for the store. Nobody waits long for it: give it one chance to be closed.
            Session::Lost { id } | Session::Opening(Attempt { id, .. }) => {
                let deadline = now + self.patience();
                let step = Step::Pausing { until: now };
                self.session = Session::Closing { id, deadline, step, failures: 0 };
                self.ask_to_close(now);
            }
            Session::Idle => self.closed(now),
            Session::Closing { .. } | Session::Closed => {}
        }
    }

    fn ask_to_close(&mut self, now: Instant) {
        let patience = self.patience();
        let Session::Closing { id, .. } = self.session else { return };
        let flight = self.send(About::Session, Verb::Close { session: id }, patience, now);
        if let Session::Closing { step, .. } = &mut self.session {
            *step = Step::Asking(flight);
        }
    }

    fn closing_failed(&mut self, now: Instant) {
        let Session::Closing { failures, .. } = &mut self.session else { return };
        *failures += 1;
        let failures = *failures;
        let until = now + self.pause(failures);
        if let Session::Closing { step, .. } = &mut self.session {
            *step = Step::Pausing { until };
        }
    }

    fn closed(&mut self, now: Instant) {
        self.session = Session::Closed;
        for key in self.keys() {
            self.resigned(key, now);
        }
        self.events.push_back(Event::Closed);
    }

    // ----- what came back, and what is due --------------------------------------------------

    pub(crate) fn session_reply(&mut self, outcome: Result<Answer, Failure>, now: Instant) {
        match &mut self.session {
            Session::Opening(attempt) => {
                let Step::Asking(flight) = attempt.step else { return };
                match outcome {
                    Ok(Answer::Open(opening)) => self.opened(flight, &opening, now),
                    Ok(_) => self.opening_failed(Failure::Indeterminate, now),
                    Err(failure) => self.opening_failed(failure, now),
                }
            }
            Session::Open(open) => {
                let Some(flight) = open.flight.take() else { return };
                match outcome {
                    Ok(Answer::Renew(renewal)) => self.renewed(flight, renewal, now),
                    Ok(_) => self.renewal_failed(Failure::Indeterminate, false, now),
                    Err(failure) => self.renewal_failed(failure, false, now),
                }
            }
            Session::Closing { .. } => match outcome {
                Ok(_) | Err(Failure::SessionLost) => self.closed(now),
                Err(_) => self.closing_failed(now),
            },
            Session::Idle | Session::Lost { .. } | Session::Closed => {}
        }
    }

    pub(crate) fn session_timeout(&mut self, now: Instant) {
        let may_renew = self.may_renew();
        match &mut self.session {
            Session::Opening(Attempt { step, .. }) if step.is_due(now) => match step {
                Step::Asking(_) => self.opening_failed(Failure::Indeterminate, now),
                Step::Pausing { .. } => self.ask_to_open(now),
            },
            Session::Open(open) => {
                if open.flight.is_some_and(|flight| flight.is_overdue(now)) {
                    open.flight = None;
                    self.renewal_failed(Failure::Indeterminate, true, now);
                }
                if let Session::Open(open) = &self.session
                    && open.flight.is_none()
                    && open.next <= now
                    && may_renew
                {
                    self.renew(now);
                }
            }
            Session::Closing { step, .. } if step.is_due(now) => match step {
                Step::Asking(_) => self.closing_failed(now),
                Step::Pausing { .. } => self.ask_to_close(now),
            },
            _ => {}
        }
    }
}
