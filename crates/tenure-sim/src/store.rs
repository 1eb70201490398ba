//! The model store: linearizable by construction, of every kind that [`Capabilities`] can describe.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tenure_core::{
    Answer, Capabilities, ElectionKey, ExpiryJudge, Failure, Instant, NodeId, Opening, Petition, Plant,
    Planted, Renewal, Sequence, SessionId, Stamp, Standing, StoreIdentity, Term, Verb,
};

use crate::clock::{Clock, Real, nanos};
use crate::config::Ages;
use crate::fact::{Fact, Freed};
use crate::ledger::Ledger;

mod reading;
mod rows;

/// A line of the model's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A term was granted.
    Elected(Term),
    /// Its session is over.
    Lost(Term),
    /// It was given up.
    Resigned(Term),
    /// The election was ended.
    Deleted,
}

#[derive(Clone, Debug)]
struct SessionRow {
    id: SessionId,
    node: usize,
    life: u32,
    live: bool,
    /// It was closed by its node, or superseded.
    left: bool,
    sequence: Sequence,
    ttl: Duration,
    applied: Real,
    applied_local: Instant,
    applied_clock: Instant,
    barrier: u64,
    notices: u64,
    grants: u64,
}

#[derive(Clone, Debug, Default)]
struct Lease {
    term: Term,
    floor: Term,
    holder: Option<SessionId>,
    /// The highest attempt that was told that it leads.
    attempt: u64,
    ended: Term,
    petition: Option<Petition>,
    stood: bool,
    /// Who stands; on a queue, in order.
    candidates: Vec<Candidate>,
    history: Vec<Line>,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    session: SessionId,
    priority: i32,
    /// Its latest claim: only a resignation that was sent after it takes the candidate out of the line.
    attempt: u64,
    /// When that was sent.
    sent: Real,
}

#[derive(Clone, Debug)]
struct State {
    sessions: Vec<SessionRow>,
    leases: Vec<Lease>,
    ledger: Ledger,
}

/// Whom a changed election concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// Everybody, unless the lease turns out to have been granted by the same request.
    Freed,
    /// Who was granted the lease, or is asked to give it up.
    Node(usize),
    /// Everybody.
    All,
}

/// The moment at which a request is executed.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Real time.
    pub real: Real,
    /// When it was sent.
    pub sent: Real,
    /// The clock of the one machine, where there is only one.
    pub local: Instant,
}

/// The model.
#[derive(Debug)]
pub struct ModelStore {
    capabilities: Capabilities,
    strict_line: bool,
    renewals_tell: bool,
    ages: Ages,
    planted: Planted,
    /// How often it looks for sessions that have expired.
    tick: Real,
    /// The store's own clock.
    pub clock: Clock,
    identity: u128,
    names: Vec<NodeId>,
    state: State,
    snapshot: State,
    /// When each renewal was first applied, whatever the store has forgotten since.
    first_applied: HashMap<(SessionId, Sequence), Real>,
    /// What the executed requests did, for the invariants.
    pub facts: Vec<Fact>,
    /// Elections that have changed since hints were sent, and whom that concerns.
    pub changed: BTreeMap<usize, Concern>,
    /// The ledger has changed since hints were sent.
    pub rewritten: bool,
}

impl ModelStore {
    /// An empty store.
    #[must_use]
    pub fn new(
        capabilities: Capabilities,
        ages: Ages,
        clock: Clock,
        names: Vec<NodeId>,
        elections: usize,
        planted: Planted,
    ) -> Self {
        let state = State {
            sessions: Vec::new(),
            leases: vec![Lease::default(); elections],
            ledger: Ledger::default(),
        };
        Self {
            capabilities,
            strict_line: false,
            renewals_tell: false,
            ages,
            planted,
            tick: 1,
            clock,
            identity: 1,
            names,
            snapshot: state.clone(),
            state,
            first_applied: HashMap::new(),
            facts: Vec::new(),
            changed: BTreeMap::new(),
            rewritten: false,
        }
    }

    /// The same, looking for expired sessions only so often, as ZooKeeper does: they live a little longer.
    #[must_use]
    pub fn looking_every(self, tick: Real) -> Self {
        Self { tick, ..self }
    }

    /// The same, with a line of its own.
    #[must_use]
    pub fn in_strict_line(self, strict_line: bool) -> Self {
        Self { strict_line, ..self }
    }

    /// The same, telling candidates of their elections when they renew.
    #[must_use]
    pub fn telling(self, renewals_tell: bool) -> Self {
        Self { renewals_tell, ..self }
    }

    fn note(&mut self, election: usize, concern: Concern) {
        if self.changed.get(&election) != Some(&Concern::All) {
            self.changed.insert(election, concern);
        }
    }

    /// Executes a request of a node, which knows the elections by these keys.
    pub fn execute(
        &mut self,
        node: usize,
        life: u32,
        verb: &Verb,
        keys: &[ElectionKey],
        now: Moment,
    ) -> Result<(StoreIdentity, Answer), Failure> {
        self.retire_expired(now);
        let answer = match verb {
            Verb::Open { session, sequence, ttl, supersedes, over } => {
                self.open(node, life, *session, *sequence, *ttl, *supersedes, *over, now).map(Answer::Open)
            }
            Verb::Renew { session, sequence, .. } => {
                self.renew(*session, *sequence, keys, now).map(Answer::Renew)
            }
            Verb::Claim { .. } => self.claim(verb, now).map(Answer::Claim),
            Verb::Resign { session, election, attempt, term, to } => {
                self.resign(*session, *election, *attempt, *term, to.as_ref(), now);
                Ok(Answer::Resign)
            }
            Verb::Close { session } => {
                self.end(*session, Freed::Closed, now);
                Ok(Answer::Close)
            }
            Verb::Read { election } => Ok(Answer::Read(self.record(election.index(), now))),
        };
        answer.map(|answer| (StoreIdentity(self.identity), answer))
    }

    /// Keeps the present state to go back to.
    pub fn take_snapshot(&mut self) {
        self.snapshot = self.state.clone();
    }

    /// Goes back to the last snapshot.
    pub fn roll_back(&mut self, silent: bool) {
        self.state = self.snapshot.clone();
        if !silent {
            self.identity += 1;
        }
    }

    /// Takes a session out of a line that it has left, or takes a lease from it that it has resigned, after a roll-back
    /// has given it back.
    pub fn forget_candidate(&mut self, election: usize, id: SessionId) {
        let lease = &mut self.state.leases[election];
        lease.candidates.retain(|candidate| candidate.session != id);
        if lease.holder.take_if(|holder| *holder == id).is_some() {
            lease.history.push(Line::Resigned(lease.term));
            self.note(election, Concern::All);
        }
    }

    /// When the store's own timer retires the next session, if it judges at all.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Real> {
        if self.capabilities.expiry == ExpiryJudge::Candidate {
            return None;
        }
        let live = self.state.sessions.iter().filter(|session| session.live);
        live.map(|session| self.expires(session)).min()
    }

    /// The store's timer counts the ttl on a clock of the store's rate that is never stepped. What has expired is
    /// found at the next tick.
    fn expires(&self, session: &SessionRow) -> Real {
        let life = (nanos(session.ttl) * 1000).div_ceil(self.clock.rate());
        (session.applied + life).div_ceil(self.tick) * self.tick
    }

    /// Retires what has expired, where the store judges.
    pub fn retire_expired(&mut self, now: Moment) {
        if self.capabilities.expiry == ExpiryJudge::Candidate {
            return;
        }
        let expired: Vec<SessionId> = self
            .state
            .sessions
            .iter()
            .filter(|session| session.live && now.real >= self.expires(session))
            .map(|session| session.id)
            .collect();
        for id in expired {
            self.retire(id, now);
        }
    }

    /// Ends an election; the holder stays until it gives up by itself.
    pub fn delete(&mut self, election: usize, force: bool) -> bool {
        let resets = self.planted.has(Plant::StoreDeleteResetsTerm);
        let holder = self.state.leases[election].holder.filter(|id| self.live(*id));
        let lease = &mut self.state.leases[election];
        if (holder.is_some() && !force) || !lease.stood {
            return false;
        }
        let number = lease.term.max(lease.floor).next();
        (lease.ended, lease.floor) = (number, number);
        lease.stood = false;
        lease.candidates.clear();
        lease.history.push(Line::Deleted);
        if resets {
            (lease.term, lease.floor, lease.ended) = (Term::NONE, Term::NONE, Term::NONE);
        }
        if let Some(session) = holder.and_then(|id| self.session(id)) {
            session.notices += 1;
        }
        self.facts.push(Fact::Deleted { election, number });
        self.note(election, Concern::All);
        true
    }

    /// Asks the holder to give its term up. Refused if the named successor does not stand.
    pub fn petition(&mut self, election: usize, to: Option<NodeId>) {
        let Some(holder) = self.state.leases[election].holder.filter(|id| self.live(*id)) else { return };
        if to.as_ref().is_some_and(|to| !self.standing(election).any(|(node, _)| self.names[node] == *to)) {
            return;
        }
        let lease = &mut self.state.leases[election];
        lease.petition = Some(Petition { term: lease.term, to });
        if let Some(session) = self.session(holder) {
            session.notices += 1;
        }
        if let Some(leader) = self.node_of(holder) {
            self.note(election, Concern::Node(leader));
        }
    }

    /// The history of an election.
    #[must_use]
    pub fn history(&self, election: usize) -> &[Line] {
        &self.state.leases[election].history
    }

    /// The priorities of the live candidates of an election.
    pub fn standing(&self, election: usize) -> impl Iterator<Item = (usize, i32)> + '_ {
        self.state.leases[election].candidates.iter().filter_map(|candidate| {
            let session = self.state.sessions.iter().find(|row| row.id == candidate.session && row.live)?;
            Some((session.node, candidate.priority))
        })
    }

    /// The nodes that wait for an election and were renewed lately.
    pub(crate) fn in_line(&self, election: usize, now: Moment) -> impl Iterator<Item = usize> + '_ {
        let live = self.state.leases[election].candidates.iter().filter(|other| self.live(other.session));
        let lately = live.filter(move |other| self.renewed_lately(other.session, now));
        lately.filter_map(|other| self.node_of(other.session))
    }

    // ----- sessions -------------------------------------------------------------------------

    fn session(&mut self, id: SessionId) -> Option<&mut SessionRow> {
        self.state.sessions.iter_mut().find(|session| session.id == id)
    }

    pub(crate) fn live(&self, id: SessionId) -> bool {
        self.state.sessions.iter().any(|session| session.id == id && session.live)
    }

    fn touch(&mut self, id: SessionId, sequence: Sequence, now: Moment) {
        let clock = self.clock.read(now.real);
        self.first_applied.entry((id, sequence)).or_insert(now.real);
        if let Some(row) = self.session(id) {
            row.sequence = row.sequence.max(sequence);
            row.applied = now.real;
            row.applied_local = now.local;
            row.applied_clock = clock;
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the fields of one request")]
    fn open(
        &mut self,
        node: usize,
        life: u32,
        id: SessionId,
        sequence: Sequence,
        ttl: Duration,
        supersedes: Option<SessionId>,
        over: Option<Stamp>,
        now: Moment,
    ) -> Result<Opening, Failure> {
        if let Some(row) = self.session(id) {
            if !row.live {
                return Err(Failure::SessionLost);
            }
            row.life = life;
            // The same request once more, late, is no new sign of life: only a later one is.
            if sequence > row.sequence && !self.planted.has(Plant::StoreReopenKeepsPulse) {
                self.touch(id, sequence, now);
            }
            return Ok(Opening::Opened { ttl });
        }
        if let Some(old) = supersedes {
            self.end(old, Freed::Superseded, now);
        }
        if let Some(stamp) = over {
            self.retire_exactly(stamp, now);
        }
        let rival = self.state.sessions.iter().find(|row| row.live && row.node == node).map(|row| row.id);
        if let Some(rival) = rival {
            return Ok(Opening::Occupied { pulse: self.pulse(rival, now) });
        }
        self.first_applied.entry((id, sequence)).or_insert(now.real);
        self.state.sessions.push(SessionRow {
            id,
            node,
            life,
            live: true,
            left: false,
            sequence,
            ttl,
            applied: now.real,
            applied_local: now.local,
            applied_clock: self.clock.read(now.real),
            barrier: 0,
            notices: 0,
            grants: 0,
        });
        Ok(Opening::Opened { ttl })
    }

    fn renew(
        &mut self,
        id: SessionId,
        sequence: Sequence,
        keys: &[ElectionKey],
        now: Moment,
    ) -> Result<Renewal<ElectionKey>, Failure> {
        let forgets = self.planted.has(Plant::StoreForgetsRetirement);
        let row = self.session(id).filter(|row| row.live || forgets).ok_or(Failure::SessionLost)?;
        row.live = true;
        let (previous, notices, grants) = (row.sequence, row.notices, row.grants);
        let (node, life) = (row.node, row.life);
        if sequence > previous {
            self.touch(id, sequence, now);
            self.facts.push(Fact::Renewed { session: id, node, life });
        }
        let waits = |election: &usize| self.renewals_tell && self.stands(*election, id);
        let waits_for = (0..self.state.leases.len()).filter(waits);
        let waits_for = waits_for.map(|election| (keys[election], self.record(election, now))).collect();
        Ok(Renewal { previous, notices, grants, waits_for })
    }

    /// The session is over by the node's own will: its leases are free.
    fn end(&mut self, id: SessionId, how: Freed, now: Moment) {
        let Some(row) = self.session(id).filter(|row| row.live) else { return };
        (row.live, row.left) = (false, true);
        let (node, life) = (row.node, row.life);
        self.facts.push(Fact::GivenUp { node, life });
        self.free_all(id, how, now);
    }

    /// The session was silent for its whole life.
    fn retire(&mut self, id: SessionId, now: Moment) {
        let Some(row) = self.session(id).filter(|row| row.live) else { return };
        row.live = false;
        let (node, ttl, last) = (row.node, row.ttl, Stamp { session: id, sequence: row.sequence });
        // A store that went back may apply an old renewal once more: that is no new sign of life.
        let applied = self.first_applied(last).unwrap_or(now.real);
        self.facts.push(Fact::Retired { session: id, node, applied, ttl, at: now.real });
        self.free_all(id, Freed::Lapsed, now);
    }

    /// When this sign of life was first applied, whatever the store has forgotten since.
    pub(crate) fn first_applied(&self, stamp: Stamp) -> Option<Real> {
        self.first_applied.get(&(stamp.session, stamp.sequence)).copied()
    }

    /// A leader has found a session silent for its whole life.
    pub(crate) fn retire_for_leader(&mut self, stamp: Stamp, now: Moment) {
        self.retire_expired(now);
        let node = self.node_of(stamp.session);
        let whatever = self.rows().find(|(_, of, live)| *live && Some(*of) == node);
        match whatever.filter(|_| self.has(Plant::StoreRetiresNode)) {
            Some((id, ..)) => self.retire(id, now),
            None => self.retire_exactly(stamp, now),
        }
    }

    pub(crate) fn retire_exactly(&mut self, stamp: Stamp, now: Moment) {
        let blind = self.planted.has(Plant::StoreSkipsCompare);
        let matches = self
            .session(stamp.session)
            .is_some_and(|row| row.live && (row.sequence == stamp.sequence || blind));
        if matches {
            self.retire(stamp.session, now);
        }
    }

    fn free_all(&mut self, id: SessionId, how: Freed, now: Moment) {
        let Some(row) = self.session(id) else { return };
        let (node, pulse) = (row.node, (row.applied, row.ttl));
        let skips = self.planted.has(Plant::StoreSkipsEvent);
        let mut freed = Vec::new();
        for election in 0..self.state.leases.len() {
            let lease = &mut self.state.leases[election];
            lease.candidates.retain(|candidate| candidate.session != id);
            if lease.holder != Some(id) {
                continue;
            }
            lease.holder = None;
            let term = lease.term;
            match how {
                Freed::Closed => lease.history.push(Line::Resigned(term)),
                _ if !skips => lease.history.push(Line::Lost(term)),
                _ => {}
            }
            self.facts.push(Fact::Freed { election, node, how, pulse });
            self.note(election, Concern::Freed);
            freed.push(election);
        }
        // In a strict line, whoever waited behind moves up.
        if self.strict_line {
            (0..self.state.leases.len()).for_each(|election| self.note(election, Concern::All));
        }
        for election in freed.into_iter().filter(|_| how == Freed::Closed) {
            self.pass_on(election, None, now);
        }
    }

    // ----- leases ---------------------------------------------------------------------------

    fn claim(&mut self, verb: &Verb, now: Moment) -> Result<Standing, Failure> {
        let Verb::Claim { tell_only, session, election, attempt, priority, over, above, since } = verb else {
            return Err(Failure::Unavailable);
        };
        let (id, election) = (*session, election.index());
        let overtaken_granted = self.planted.has(Plant::StoreGrantsOvertaken);
        let forgets = self.planted.has(Plant::StoreForgetsRetirement);
        let row = self.session(id).filter(|row| row.live || forgets).ok_or(Failure::SessionLost)?;
        row.live = true;
        let (node, life, barrier) = (row.node, row.life, row.barrier);
        let overtaken = *attempt < barrier && !overtaken_granted;
        let ended = since.is_some_and(|since| self.state.leases[election].ended > since);
        if overtaken || ended {
            return Ok(self.waiting(election, now));
        }
        let lease = &mut self.state.leases[election];
        lease.floor = lease.floor.max(*above);
        if *tell_only {
            return Ok(self.waiting(election, now));
        }
        lease.stood = true;
        if lease.holder == Some(id) {
            lease.attempt = lease.attempt.max(*attempt);
            return Ok(Standing::Leading { term: lease.term });
        }
        let (priority, attempt, sent) = (*priority, *attempt, now.sent);
        self.enter(election, Candidate { session: id, priority, attempt, sent });
        if let Some(stamp) = over
            && self.state.leases[election].holder == Some(stamp.session)
        {
            self.retire_exactly(*stamp, now);
        }
        if self.state.leases[election].holder.is_some()
            || (self.strict_line && self.place(election, id) != Some(0))
        {
            return Ok(self.waiting(election, now));
        }
        if let Some(preferred) = self.preferred_to(election, id, now) {
            self.grant_in_line(election, preferred, self.node_of(preferred.session), now);
            return Ok(self.waiting(election, now));
        }
        self.state.leases[election].attempt = attempt;
        Ok(Standing::Leading { term: self.grant(election, id, (node, life), over.is_some(), None, now) })
    }

    /// To whom a free lease is granted although another has claimed it: the first in line whose priority is higher.
    fn preferred_to(&self, election: usize, id: SessionId, now: Moment) -> Option<Candidate> {
        let line = &self.state.leases[election].candidates;
        let priority = line[self.place(election, id)?].priority;
        let before = |other: &&Candidate| other.priority > priority && self.live(other.session);
        line.iter().filter(before).find(|other| self.renewed_lately(other.session, now)).copied()
    }

    /// Enters the list of candidates: a queue keeps order, by priority and then by arrival.
    fn enter(&mut self, election: usize, new: Candidate) {
        let candidates = &mut self.state.leases[election].candidates;
        if let Some(known) = candidates.iter_mut().find(|candidate| candidate.session == new.session) {
            if new.attempt > known.attempt {
                (known.attempt, known.sent) = (new.attempt, new.sent);
            }
            return;
        }
        let place = candidates.iter().position(|other| other.priority < new.priority);
        candidates.insert(place.unwrap_or(candidates.len()), new);
    }

    /// Whether this session waits for the election.
    #[must_use]
    pub fn stands(&self, election: usize, id: SessionId) -> bool {
        self.place(election, id).is_some()
    }

    /// Whether this session holds the lease of the election, or waits for it.
    #[must_use]
    pub fn knows(&self, election: usize, id: SessionId) -> bool {
        self.state.leases[election].holder == Some(id) || self.stands(election, id)
    }

    fn place(&self, election: usize, id: SessionId) -> Option<usize> {
        self.state.leases[election].candidates.iter().position(|candidate| candidate.session == id)
    }

    fn grant(
        &mut self,
        election: usize,
        id: SessionId,
        (node, life): (usize, u32),
        over: bool,
        next: Option<usize>,
        now: Moment,
    ) -> Term {
        let keeps = self.planted.has(Plant::StoreKeepsTerm) && over;
        if let Some(row) = self.session(id) {
            row.grants += 1;
        }
        let lease = &mut self.state.leases[election];
        let before = lease.term.max(lease.floor);
        lease.term = if keeps { before } else { before.next() };
        lease.holder = Some(id);
        lease.candidates.retain(|candidate| candidate.session != id);
        let term = lease.term;
        lease.history.push(Line::Elected(term));
        self.facts.push(Fact::Granted {
            election,
            node,
            life,
            session: id,
            term,
            next,
            sent: now.sent,
            at: now.real,
        });
        self.note(election, Concern::Node(node));
        term
    }

    fn resign(
        &mut self,
        id: SessionId,
        election: ElectionKey,
        attempt: u64,
        term: Option<Term>,
        to: Option<&NodeId>,
        now: Moment,
    ) {
        let election = election.index();
        let anyone = self.planted.has(Plant::StoreResignsAnyone);
        let resets = self.planted.has(Plant::StoreResignResetsTerm);
        let Some(row) = self.session(id).filter(|row| row.live) else { return };
        row.barrier = row.barrier.max(attempt);
        let (node, pulse) = (row.node, (row.applied, row.ttl));
        self.state.leases[election].candidates.retain(|other| other.session != id || other.attempt > attempt);
        let named = to.and_then(|to| self.names.iter().position(|name| name == to));
        let named = named.filter(|named| self.standing(election).any(|(node, _)| node == *named));
        let late_too = self.planted.has(Plant::StoreResignsLate);
        if self.strict_line {
            self.note(election, Concern::All);
        }
        let lease = &mut self.state.leases[election];
        let in_time = attempt >= lease.attempt || late_too;
        let ours = lease.holder == Some(id) && term.is_none_or(|term| term == lease.term) && in_time;
        let theirs = anyone && lease.holder.is_some() && term.is_some();
        if !(ours || theirs) {
            return;
        }
        lease.holder = None;
        let term = lease.term;
        lease.history.push(Line::Resigned(term));
        if resets {
            (lease.term, lease.floor) = (Term::NONE, Term::NONE);
        }
        self.facts.push(Fact::Freed { election, node, how: Freed::Resigned, pulse });
        self.note(election, Concern::Freed);
        self.pass_on(election, named, now);
    }

    /// Grants a lease that was given up to the named candidate, or to the first in line, by the same write.
    fn pass_on(&mut self, election: usize, named: Option<usize>, now: Moment) {
        let line = &self.state.leases[election].candidates;
        let live: Vec<Candidate> = line.iter().copied().filter(|other| self.live(other.session)).collect();
        let first = live.iter().find(|candidate| self.renewed_lately(candidate.session, now));
        let named =
            named.and_then(|named| live.iter().find(|other| self.node_of(other.session) == Some(named)));
        let Some(successor) = named.or(first) else { return };
        let next = self.node_of(successor.session);
        let ignored = self.planted.has(Plant::StoreSuccessorIgnored);
        let granted = *live.first().filter(|_| ignored).unwrap_or(successor);
        self.grant_in_line(election, granted, next, now);
    }

    fn grant_in_line(&mut self, election: usize, granted: Candidate, next: Option<usize>, now: Moment) {
        let Some(life) = self.life_of(granted.session) else { return };
        self.state.leases[election].attempt = granted.attempt;
        let now = Moment { sent: granted.sent, ..now };
        self.grant(election, granted.session, life, false, next, now);
    }

    /// Whether a candidate is likely to be there, by the store's own clock. It decides only who is asked first, so it
    /// may be wrong. In a strict line, the order is that of the line.
    pub(crate) fn renewed_lately(&self, id: SessionId, now: Moment) -> bool {
        let row = self.state.sessions.iter().find(|row| row.id == id);
        let age = |row: &SessionRow| self.clock.read(now.real).since(row.applied_clock);
        self.strict_line || row.is_some_and(|row| age(row) <= row.ttl / 2)
    }
}
