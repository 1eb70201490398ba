//! Standing for an election: wait for the very instant at which the lease may be taken, then claim.

use std::collections::BTreeSet;

use crate::capabilities::{ExpiryJudge, News, Sessions};
use crate::election::{Act, Candidacy, Phase, Resignation, Role, Then};
use crate::event::Event;
use crate::machine::{Machine, Refusal};
use crate::plants::Plant;
use crate::record::{Age, Pulse, Record, SessionId, Standing};
use crate::request::{Answer, ElectionKey, Failure, Flight, Verb};
use crate::session::Session;
use crate::silence::Look;
use crate::term::Term;
use crate::time::Instant;

impl Machine {
    /// Stands for an election until elected, withdrawn, or the election is ended.
    ///
    /// # Errors
    /// [`Refusal`] if this node may not stand, or stands already.
    pub fn stand(&mut self, key: ElectionKey, now: Instant) -> Result<(), Refusal> {
        self.expire(now);
        if self.closing || matches!(self.session, Session::Closed) {
            return Err(Refusal::Closed);
        }
        if !self.settings.eligible && !self.planted.has(Plant::IneligibleStands) {
            return Err(Refusal::NotEligible);
        }
        match &mut self.election(key).role {
            Role::Idle => self.become_standing(key, None, now),
            Role::Resigning(resignation) if resignation.then == Then::Rest => resignation.then = Then::Stand,
            Role::Standing(_) | Role::Leading { .. } | Role::Resigning(_) => {
                return Err(Refusal::AlreadyStanding);
            }
            Role::Stopping { .. } => return Err(Refusal::StillStopping),
        }
        Ok(())
    }

    /// Stands no longer. [`Event::Withdrawn`] tells when no claim can be granted any more.
    pub fn withdraw(&mut self, key: ElectionKey, now: Instant) {
        self.expire(now);
        match &mut self.election(key).role {
            Role::Standing(candidacy) => {
                let unheard = matches!(candidacy.phase, Phase::Asking { .. }) || candidacy.failures > 0;
                let forgets = unheard && self.planted.has(Plant::UncertainClaimForgotten);
                if self.session.is_open() && !forgets {
                    self.become_resigning(key, None, None, now);
                } else {
                    self.become_idle(key);
                    self.events.push_back(Event::Withdrawn { election: key });
                }
            }
            Role::Resigning(Resignation { then, .. }) => *then = Then::Rest,
            Role::Idle | Role::Leading { .. } | Role::Stopping { .. } => {}
        }
    }

    /// Word that an election may have changed.
    pub fn hint(&mut self, key: ElectionKey, now: Instant) {
        self.expire(now);
        let act = self.act_on_hint(key, now);
        self.hinted(key, act, now);
    }

    /// Word of something about an election that concerns this node alone: it was granted the lease, or is asked to
    /// give it up.
    pub fn hint_named(&mut self, key: ElectionKey, now: Instant) {
        self.expire(now);
        let act = match self.capabilities.sessions {
            Sessions::Anywhere => Act::Look,
            // Who holds the session is known to the store alone.
            Sessions::OwnConnection => self.act_on_hint(key, now),
        };
        self.hinted(key, act, now);
    }

    /// Word of something about an election that concerns another node alone: a candidate that is told by renewals, or
    /// asks by itself, learns of it soon enough. But whoever observes wants to know now, and whoever leads asks whether
    /// it still does.
    pub fn hint_other(&mut self, key: ElectionKey, now: Instant) {
        self.expire(now);
        let election = self.election(key);
        if election.observed || matches!(election.role, Role::Leading { .. }) {
            self.hinted(key, Act::Look, now);
        }
    }

    fn hinted(&mut self, key: ElectionKey, act: Act, now: Instant) {
        let election = self.election(key);
        if let Role::Standing(candidacy) = &mut election.role {
            match &mut candidacy.phase {
                // A look finds a grant, but leaves a lease that is free to others.
                Phase::Asking { .. } if candidacy.hinted.is_some() && act == Act::Look => {}
                Phase::Asking { .. } => candidacy.hinted = Some(act),
                Phase::Waiting { .. } => self.act(key, act, now),
                Phase::Parked => {}
            }
        } else if matches!(election.role, Role::Leading { .. }) || election.observed {
            self.look(key, now);
        }
        self.arm(key);
    }

    /// Word that anything may have changed. A leader hears with its next renewal whether that
    /// concerns it: it may hold thousands of leases, and looks at none of them for a mere maybe.
    pub fn hint_all(&mut self, now: Instant) {
        for key in self.keys() {
            if !matches!(self.election(key).role, Role::Leading { .. }) {
                self.hint(key, now);
            }
        }
    }

    fn act_on_hint(&mut self, key: ElectionKey, now: Instant) -> Act {
        if self.planted.has(Plant::HintIsTruth) {
            let over = self.election(key).silence.stamp();
            return Act::Claim { over };
        }
        // A claim would be granted on the spot, without the delay that is due after a loss.
        if !self.settings.takeover_delay.is_zero() || now < self.wary_until { Act::Look } else { Act::PLAIN }
    }

    // ----- becoming -------------------------------------------------------------------------

    /// Stands. A candidacy that goes on knows `since` which term, so that it is told of the election's end.
    pub(crate) fn become_standing(&mut self, key: ElectionKey, since: Option<Term>, now: Instant) {
        let open = self.session.is_open();
        let act = self.act_on_hint(key, now);
        let began_after = self.serial;
        let election = self.election(key);
        assert!(matches!(election.role, Role::Idle), "a candidate comes from nothing");
        election.since = since;
        let phase = if open { Phase::Waiting { until: now, act } } else { Phase::Parked };
        election.role = Role::Standing(Candidacy {
            phase,
            hinted: None,
            told: false,
            began_after,
            failures: 0,
            freed: None,
        });
        if open {
            self.act(key, act, now);
        }
        self.arm(key);
    }

    /// The election was ended. A claim of ours may still be on its way, so the candidacy is withdrawn
    /// like any other.
    fn become_ended(&mut self, key: ElectionKey, now: Instant) {
        assert!(matches!(self.election(key).role, Role::Standing(_)), "only a candidate is told of an end");
        self.events.push_back(Event::Ended { election: key });
        self.become_resigning(key, None, None, now);
    }

    pub(crate) fn become_idle(&mut self, key: ElectionKey) {
        let election = self.election(key);
        election.role = Role::Idle;
        if election.observed && election.look.is_none() {
            election.look_at = Some(Instant::ZERO); // an observer again: look at once
        }
        self.arm(key);
    }

    /// Drops a candidacy without a word to the store: its session is about to be closed.
    pub(crate) fn abandon(&mut self, key: ElectionKey) {
        if matches!(self.election(key).role, Role::Standing(_)) {
            self.become_idle(key);
            self.events.push_back(Event::Withdrawn { election: key });
        }
    }

    /// There is a session to claim under.
    pub(crate) fn unpark(&mut self, now: Instant) {
        for key in self.keys() {
            let act = self.act_on_hint(key, now);
            if let Role::Standing(candidacy) = &mut self.election(key).role
                && matches!(candidacy.phase, Phase::Parked)
            {
                (candidacy.told, candidacy.hinted) = (false, None);
                self.act(key, act, now);
                self.arm(key);
            }
        }
    }

    /// What was seen before is void: look again, now.
    pub(crate) fn look_anew(&mut self, key: ElectionKey, now: Instant) {
        if let Role::Standing(candidacy) = &mut self.election(key).role {
            candidacy.hinted = None;
            match candidacy.phase {
                Phase::Waiting { .. } => candidacy.phase = Phase::Waiting { until: now, act: Act::Look },
                Phase::Asking { .. } => candidacy.hinted = Some(Act::Look),
                Phase::Parked => {}
            }
        }
        self.arm(key);
    }

    // ----- acting ---------------------------------------------------------------------------

    /// Sends a claim or a look. Without health there is no claim; without a session, nothing.
    fn act(&mut self, key: ElectionKey, act: Act, now: Instant) {
        let Session::Open(open) = &self.session else {
            return self.set_phase(key, Phase::Parked);
        };
        let session = open.id;
        let act = self.without_claim(act);
        let patience = self.patience();
        let verb = match act {
            Act::Look => Verb::Read { election: key },
            Act::Tell | Act::Claim { .. } => self.claim(key, session, act),
        };
        let flight = self.line_up(key, verb, patience, now);
        self.set_phase(key, Phase::Asking { flight, act });
    }

    fn claim(&mut self, key: ElectionKey, session: SessionId, act: Act) -> Verb {
        let over = match act {
            Act::Claim { over } => over,
            Act::Look | Act::Tell => None,
        };
        let attempt = self.next_attempt();
        let untold = self.planted.has(Plant::HighestTermUntold);
        let immodest = self.planted.has(Plant::PriorityIgnored);
        let election = self.election(key);
        let (highest, since) = (election.highest, election.since);
        Verb::Claim {
            session,
            election: key,
            attempt,
            priority: if immodest { i32::MAX } else { self.settings.priority },
            over,
            tell_only: act == Act::Tell,
            above: if untold { Term::NONE } else { highest },
            since,
        }
    }

    fn set_phase(&mut self, key: ElectionKey, phase: Phase) {
        if let Role::Standing(candidacy) = &mut self.election(key).role {
            candidacy.phase = phase;
        }
    }

    // ----- what came back -------------------------------------------------------------------

    pub(crate) fn candidate_reply(
        &mut self,
        key: ElectionKey,
        outcome: Result<Answer, Failure>,
        now: Instant,
    ) {
        let Role::Standing(Candidacy { phase: Phase::Asking { flight, act }, .. }) = self.election(key).role
        else {
            return;
        };
        match outcome {
            Ok(Answer::Claim(Standing::Leading { term })) => self.granted(key, term, now),
            Ok(Answer::Claim(Standing::Waiting { seen }) | Answer::Read(seen)) => {
                self.consider(key, &seen, flight, now);
            }
            Ok(_) => self.claim_failed(key, act, Failure::Indeterminate, now),
            Err(failure) => self.claim_failed(key, act, failure, now),
        }
        self.ask_again_if_hinted(key, now);
    }

    /// The store says that our session holds the lease under this term.
    fn granted(&mut self, key: ElectionKey, term: Term, now: Instant) {
        if let Session::Open(open) = &mut self.session {
            open.granted();
        }
        if self.healthy {
            return self.become_leading(key, term, now);
        }
        // Granted to a node whose application has become unhealthy meanwhile: back with it.
        let election = self.election(key);
        election.highest = election.highest.max(term);
        election.since.get_or_insert(term);
        self.leave_line(key, now);
    }

    /// The claim may or may not have been granted. Asking again with the same words tells, since
    /// the store knows our session: until then, we do not lead.
    pub(crate) fn claim_failed(&mut self, key: ElectionKey, act: Act, failure: Failure, now: Instant) {
        if failure == Failure::SessionLost {
            self.session_gone(now);
            return;
        }
        if self.planted.has(Plant::UncertainMeansWon) && matches!(act, Act::Claim { .. }) {
            let term = self.election(key).highest.next();
            self.become_leading(key, term, now);
            return;
        }
        let Role::Standing(candidacy) = &mut self.election(key).role else { return };
        candidacy.failures += 1;
        let failures = candidacy.failures;
        // A delay counts from a loss that we have seen; by the next try, that may be an old story.
        let mut act = if self.settings.takeover_delay.is_zero() { act } else { Act::Look };
        if self.planted.has(Plant::ErrorMeansFree) {
            let over = self.election(key).silence.stamp();
            act = Act::Claim { over };
        }
        let until = now + self.pause(failures);
        self.set_phase(key, Phase::Waiting { until, act });
    }

    fn ask_again_if_hinted(&mut self, key: ElectionKey, now: Instant) {
        // Whether it may be claimed is judged now: the store may be in doubt since the hint came.
        let claim = self.act_on_hint(key, now);
        if let Role::Standing(candidacy) = &mut self.election(key).role
            && matches!(candidacy.phase, Phase::Waiting { .. })
            && let Some(act) = candidacy.hinted.take()
        {
            let act = if act == Act::Look { act } else { claim };
            self.act(key, act, now);
        }
    }

    /// What a renewal told of the elections in whose line the session stands. A candidate that it did not tell of any
    /// more looks by itself.
    pub(crate) fn hear_of_elections(
        &mut self,
        waits_for: Vec<(ElectionKey, Record)>,
        flight: Flight,
        now: Instant,
    ) {
        let named: BTreeSet<ElectionKey> = waits_for.iter().map(|(key, _)| *key).collect();
        for key in self.keys() {
            let told = named.contains(&key);
            if let Role::Standing(candidacy) = &mut self.election(key).role
                && std::mem::replace(&mut candidacy.told, told)
                && !told
            {
                self.look_anew(key, now);
            }
        }
        for (key, seen) in waits_for {
            self.told_by_renewal(key, &seen, flight, now);
            self.arm(key);
        }
    }

    /// Considered like the answer to a look, unless a question of our own is under way, or was answered after the
    /// renewal was sent: what that tells is newer.
    fn told_by_renewal(&mut self, key: ElectionKey, seen: &Record, flight: Flight, now: Instant) {
        let epoch = self.trust.epoch;
        let Some(election) = self.elections.get(key.index()).and_then(Option::as_ref) else { return };
        let Role::Standing(Candidacy { phase: Phase::Waiting { .. }, began_after, .. }) = election.role
        else {
            return;
        };
        let overtaken = seen.term < election.seen_in(epoch) && flight.serial <= election.seen_after;
        let older = flight.serial <= began_after || (overtaken && !self.planted.has(Plant::OldLookCounts));
        if !older {
            self.consider(key, seen, flight, now);
        }
    }

    /// Decides from a record what to do next, and when.
    fn consider(&mut self, key: ElectionKey, seen: &Record, flight: Flight, now: Instant) {
        let asked = self.asked(key);
        if !self.believe(key, seen, now) {
            let until = now + self.pause(0);
            return self.set_phase(key, Phase::Waiting { until, act: Act::Look });
        }
        let unnoticed = self.planted.has(Plant::EndUnnoticed);
        let election = self.election(key);
        let since = *election.since.get_or_insert(seen.term);
        if seen.ended > since && !unnoticed {
            return self.become_ended(key, now);
        }
        if seen.ended > since {
            self.election(key).since = Some(seen.term);
        }
        let holder = seen.holder.as_ref().filter(|holder| Some(holder.pulse.stamp.session) != self.session());
        if holder.is_some() || seen.holder.is_none() {
            self.announce(key, holder.map(|holder| (holder.node.clone(), holder.term)));
        }
        let look = Look { sent: flight.sent, received: now };
        let pulse = seen.holder.as_ref().map(|holder| holder.pulse);
        let (at, act) = match &seen.holder {
            Some(holder) if Some(holder.pulse.stamp.session) == self.session() => {
                if !self.healthy {
                    return self.leave_line(key, now);
                }
                if self.takes_what_it_sees(key, holder.term, now) {
                    return self.granted(key, holder.term, now);
                }
                // What the store means by it is told by a claim.
                (now, Act::PLAIN)
            }
            Some(holder) => self.outlast(key, &holder.pulse, look),
            None => self.take_when_due(key, seen, now),
        };
        // The store has forgotten terms that we remember: whoever it grants the next one to must not
        // be granted one of them again. So it is told at once, however little we may claim yet.
        let forgotten = seen.term < self.election(key).highest;
        let (at, act) = if forgotten { (now, Act::Tell) } else { (at.max(self.wary_until), act) };
        let at = if asked { at.max(now + self.pause_after_refusal(key)) } else { at };
        self.wait(key, at, act, pulse, now);
    }

    /// Whether a lease that a look shows as ours is taken for granted: it was passed on to us, or a claim of ours was
    /// granted whose answer we never heard. A term that we have led under is not granted again. While the store is in
    /// doubt nothing is taken from it, and a store that keeps sessions by their connection is asked under it.
    fn takes_what_it_sees(&mut self, key: ElectionKey, term: Term, now: Instant) -> bool {
        let anywhere = self.capabilities.sessions == Sessions::Anywhere;
        anywhere && now >= self.wary_until && term > self.election(key).led
    }

    /// Whether the request under way was more than a mere look.
    fn asked(&mut self, key: ElectionKey) -> bool {
        let Role::Standing(Candidacy { phase: Phase::Asking { act, .. }, .. }) = self.election(key).role
        else {
            return false;
        };
        act != Act::Look
    }

    /// A refused claim is not repeated at once, however certain we are: the store may judge by a
    /// clock of its own.
    fn pause_after_refusal(&mut self, key: ElectionKey) -> std::time::Duration {
        let Role::Standing(candidacy) = &mut self.election(key).role else { return Default::default() };
        candidacy.failures = (candidacy.failures + 1).min(6);
        let failures = candidacy.failures - 1;
        self.pause(failures)
    }

    /// Somebody holds the lease: wait until it must have lapsed.
    fn outlast(&mut self, key: ElectionKey, pulse: &Pulse, look: Look) -> (Instant, Act) {
        let (trust, drift, planted) = (self.trust, self.settings.drift, self.planted);
        self.longest_ttl = self.longest_ttl.max(pulse.ttl);
        let mut pulse = *pulse;
        if self.planted.has(Plant::SilenceByOwnTtl) {
            pulse.ttl = self.settings.ttl;
        }
        let delay = self.takeover_delay();
        let election = self.election(key);
        let fresh = election.silence.stamp() != Some(pulse.stamp);
        let lapses = election.silence.observe(&pulse, look, trust, drift, planted);
        if let Role::Standing(candidacy) = &mut election.role {
            candidacy.freed = None;
            if fresh {
                candidacy.failures = 0;
            }
        }
        let late = self.planted.has(Plant::TakesOverAPollLater);
        let at = if late { lapses + delay + self.settings.poll_every } else { lapses + delay };
        let over = Some(pulse.stamp);
        match self.capabilities.expiry {
            // Before it ends a delay, a candidate makes sure that the loss is still the one it waited
            // for: the holder may have renewed, or resigned only now.
            ExpiryJudge::Candidate if !delay.is_zero() && look.received < at => (at, Act::Look),
            ExpiryJudge::Candidate => (at, Act::Claim { over }),
            // The store retires it by its own clock; the delay counts from when we see that it has.
            ExpiryJudge::Store if delay.is_zero() => (at, Act::PLAIN),
            ExpiryJudge::Store => (at, Act::Look),
        }
    }

    /// The lease is free: take it.
    fn take_when_due(&mut self, key: ElectionKey, seen: &Record, now: Instant) -> (Instant, Act) {
        let delay = self.takeover_delay();
        let Role::Standing(candidacy) = &mut self.election(key).role else { return (now, Act::Look) };
        let freed = match candidacy.freed {
            Some((term, at)) if term == seen.term => at,
            _ => {
                candidacy.failures = 0;
                candidacy.freed = Some((seen.term, now));
                now
            }
        };
        let vacated = seen.term > Term::NONE && seen.ended < seen.term;
        (if vacated { freed + delay } else { now }, Act::PLAIN)
    }

    fn takeover_delay(&self) -> std::time::Duration {
        if self.planted.has(Plant::TakeoverDelaySkipped) {
            return Default::default();
        }
        self.settings.takeover_delay
    }

    /// Waits for `at`, but looks again earlier where nobody would tell us of a change, or where we
    /// must see a renewal soon in order to time it, which our own renewals may show us.
    fn wait(&mut self, key: ElectionKey, at: Instant, act: Act, pulse: Option<Pulse>, now: Instant) {
        if !self.healthy {
            let until = if act == Act::Tell { at } else { self.idle_look_at(now) };
            return self.set_phase(key, Phase::Waiting { until, act: self.without_claim(act) });
        }
        let told = matches!(&self.election(key).role, Role::Standing(candidacy) if candidacy.told);
        let times = self.capabilities.expiry == ExpiryJudge::Candidate
            && pulse.is_some_and(|pulse| !matches!(pulse.age, Age::Exact(_)));
        let polls = self.capabilities.news == News::Poll;
        let polled = now + self.settings.poll_every;
        let timed = pulse.filter(|_| times).map(|pulse| {
            let known = self.election(key).silence.look_at(pulse.ttl, now);
            known.unwrap_or(polled)
        });
        // Whoever is told of changes only looks in order to see the next renewal fresh.
        let look_at = match timed {
            Some(timed) if polls => timed.min(polled),
            Some(timed) => timed,
            None => polled,
        };
        // What the renewals tell needs no look to time a renewal.
        let polls = polls || (times && !told);
        let phase = if polls && look_at < at {
            Phase::Waiting { until: look_at, act: Act::Look }
        } else {
            Phase::Waiting { until: at.max(now), act }
        };
        self.set_phase(key, phase);
        if matches!(phase, Phase::Waiting { until, .. } if until <= now) {
            self.act(key, act, now);
        }
    }

    // ----- what is due ----------------------------------------------------------------------

    pub(crate) fn candidate_timeout(&mut self, key: ElectionKey, now: Instant) {
        let Role::Standing(Candidacy { phase, .. }) = self.election(key).role else { return };
        match phase {
            Phase::Waiting { until, act } if until <= now => self.act(key, act, now),
            Phase::Asking { flight, act } if flight.is_overdue(now) => {
                self.claim_failed(key, act, Failure::Indeterminate, now);
            }
            Phase::Waiting { .. } | Phase::Asking { .. } | Phase::Parked => {}
        }
    }
}
