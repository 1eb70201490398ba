//! Leading an election, ceasing to, and giving it back.

use crate::election::{Act, Phase, Release, Resignation, Role, Step, Then};
use crate::event::{Event, Reason};
use crate::machine::{Machine, Refusal};
use crate::name::NodeId;
use crate::plants::Plant;
use crate::record::Record;
use crate::request::{About, ElectionKey, Failure, Verb};
use crate::session::Session;
use crate::term::Term;
use crate::time::Instant;

impl Machine {
    /// Gives up leadership, to a named candidate or to whoever comes first. The check fails from
    /// now on; the lease is freed once the work has [`stopped`](Machine::stopped).
    ///
    /// # Errors
    /// [`Refusal::NotLeading`] if there is nothing to give up.
    pub fn resign(&mut self, key: ElectionKey, to: Option<NodeId>, now: Instant) -> Result<(), Refusal> {
        self.expire(now);
        let Role::Leading { term } = self.election(key).role else { return Err(Refusal::NotLeading) };
        if self.planted.has(Plant::LeadsOnAfterResign) {
            self.send_resignation(key, Some(term), to, now);
            return Ok(());
        }
        self.depose(key, Reason::Resigned, now);
        if self.planted.has(Plant::ResignsBeforeJoin) {
            self.send_resignation(key, Some(term), to.clone(), now);
        }
        if let Role::Stopping { release: Some(release), .. } = &mut self.election(key).role {
            release.to = to;
        }
        Ok(())
    }

    // ----- becoming -------------------------------------------------------------------------

    pub(crate) fn become_leading(&mut self, key: ElectionKey, term: Term, now: Instant) {
        let late = now >= self.deadline() && !self.planted.has(Plant::LateReplyAccepted);
        assert!(!late, "every input lets a lapsed session go first");
        let (epoch, serial) = (self.trust.epoch, self.serial);
        let election = self.election(key);
        assert!(matches!(election.role, Role::Standing(_)), "only a candidate is elected");
        let regressed = term < election.highest || term <= election.led;
        election.highest = election.highest.max(term);
        (election.seen, election.seen_after) = ((epoch, term), serial);
        election.silence.reset();
        if regressed && !self.planted.has(Plant::RegressionIgnored) {
            // The store grants a term that we have seen before: it has gone back in time, and
            // this grant is worth nothing.
            self.distrust(now);
            self.lose_session(Reason::StoreRolledBack, now);
            return;
        }
        let election = self.election(key);
        election.role = Role::Leading { term };
        election.led = term;
        self.working += 1;
        self.events.push_back(Event::Elected { election: key, term });
        self.announce(key, Some((self.node.clone(), term)));
        self.arm(key);
    }

    /// A leader leads no longer; nothing happens to others.
    pub(crate) fn depose(&mut self, key: ElectionKey, reason: Reason, _now: Instant) {
        let Role::Leading { term } = self.election(key).role else { return };
        self.election(key).role = Role::Stopping { term, release: Some(Release::default()) };
        self.events.push_back(Event::Deposed { election: key, term, reason });
        self.announce(key, None);
        self.arm(key);
    }

    pub(crate) fn become_resigning(
        &mut self,
        key: ElectionKey,
        term: Option<Term>,
        to: Option<NodeId>,
        now: Instant,
    ) {
        assert!(
            matches!(self.election(key).role, Role::Stopping { .. } | Role::Standing(_)),
            "only who led or stood has something to give back"
        );
        let attempt = self.next_attempt();
        self.claim_again_what_it_overtakes(key);
        let step = Step::Pausing { until: now };
        let resignation = Resignation { term, to, attempt, step, failures: 0, then: Then::Rest };
        self.election(key).role = Role::Resigning(resignation);
        self.ask_to_resign(key, now);
        self.arm(key);
    }

    /// A resignation voids claims of lower numbers that arrive after it, those for other elections too. Such a claim puts
    /// nobody in line, so it is made again.
    fn claim_again_what_it_overtakes(&mut self, resigned: ElectionKey) {
        for key in self.keys() {
            if key != resigned
                && let Role::Standing(candidacy) = &mut self.election(key).role
                && matches!(candidacy.phase, Phase::Asking { act: Act::Claim { .. }, .. })
            {
                candidacy.hinted = Some(Act::PLAIN);
            }
        }
    }

    // ----- giving back ----------------------------------------------------------------------

    fn ask_to_resign(&mut self, key: ElectionKey, now: Instant) {
        let patience = self.patience();
        // A session that is being closed frees everything by itself.
        let Session::Open(open) = &self.session else { return self.resigned(key, now) };
        let session = open.id;
        let Role::Resigning(resignation) = &mut self.election(key).role else { return };
        let (attempt, term, to) = (resignation.attempt, resignation.term, resignation.to.clone());
        let verb = Verb::Resign { session, election: key, attempt, term, to };
        let flight = self.line_up(key, verb, patience, now);
        if let Role::Resigning(resignation) = &mut self.election(key).role {
            resignation.step = Step::Asking(flight);
        }
    }

    /// Sends a resignation without being in the role for it, so out of line: only planted bugs do that.
    fn send_resignation(&mut self, key: ElectionKey, term: Option<Term>, to: Option<NodeId>, now: Instant) {
        let attempt = self.next_attempt();
        let patience = self.patience();
        let Session::Open(open) = &self.session else { return };
        let verb = Verb::Resign { session: open.id, election: key, attempt, term, to };
        self.send(About::Election(key), verb, patience, now);
    }

    /// The resignation is through, or the session that it was under is over.
    pub(crate) fn resigned(&mut self, key: ElectionKey, now: Instant) {
        let Role::Resigning(resignation) = &self.election(key).role else { return };
        let (term, then) = (resignation.term, resignation.then);
        let since = self.election(key).since.filter(|_| then == Then::GoOn);
        self.become_idle(key);
        let stands = then != Then::Rest && !self.closing;
        match term {
            Some(term) => self.events.push_back(Event::Resigned { election: key, term }),
            None if !stands => self.events.push_back(Event::Withdrawn { election: key }),
            None => {}
        }
        if stands {
            self.become_standing(key, since, now);
        }
    }

    pub(crate) fn resign_failed(&mut self, key: ElectionKey, failure: Failure, now: Instant) {
        if failure == Failure::SessionLost {
            self.resigned(key, now);
            return;
        }
        let Role::Resigning(resignation) = &mut self.election(key).role else { return };
        resignation.failures += 1;
        let failures = resignation.failures;
        let until = now + self.pause(failures);
        if let Role::Resigning(resignation) = &mut self.election(key).role {
            resignation.step = Step::Pausing { until };
        }
    }

    pub(crate) fn resign_timeout(&mut self, key: ElectionKey, now: Instant) {
        let Role::Resigning(resignation) = &self.election(key).role else { return };
        match resignation.step {
            Step::Asking(flight) if flight.is_overdue(now) => {
                self.resign_failed(key, Failure::Indeterminate, now);
            }
            Step::Pausing { until } if until <= now => self.ask_to_resign(key, now),
            Step::Asking(_) | Step::Pausing { .. } => {}
        }
    }

    // ----- looking at our own lease ---------------------------------------------------------

    /// A leader reads what became of its lease: it is ours as long as the store says so.
    pub(crate) fn inspect(&mut self, key: ElectionKey, seen: &Record, now: Instant) {
        let Role::Leading { term } = self.election(key).role else { return };
        if !self.believe(key, seen, now) {
            return;
        }
        let session = match &self.session {
            Session::Open(open) => open.id,
            _ => return,
        };
        let ours = seen
            .holder
            .as_ref()
            .is_some_and(|holder| holder.term == term && holder.pulse.stamp.session == session);
        if !ours {
            self.depose(key, Reason::Superseded, now);
        } else if seen.ended > term && !self.planted.has(Plant::EndUnnoticed) {
            self.depose(key, Reason::Ended, now);
        } else if let Some(petition) = seen.petition.as_ref().filter(|petition| petition.term == term)
            && !self.planted.has(Plant::PetitionIgnored)
        {
            self.depose(key, Reason::Asked, now);
            if let Role::Stopping { release: Some(release), .. } = &mut self.election(key).role {
                release.to.clone_from(&petition.to);
            }
        }
    }

    pub(crate) fn look_if_leading(&mut self, key: ElectionKey, now: Instant) {
        if matches!(self.election(key).role, Role::Leading { .. }) {
            self.look(key, now);
        }
    }
}
