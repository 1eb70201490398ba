//! One election as one node sees it: a role that carries its data.

use crate::name::NodeId;
use crate::record::Stamp;
use crate::request::Flight;
use crate::silence::Silence;
use crate::term::Term;
use crate::time::Instant;

/// What a node is in an election. Only the machine's `become_*` functions assign it.
#[derive(Debug)]
pub(crate) enum Role {
    /// Neither stands nor leads.
    Idle,
    /// Stands, and waits for its turn.
    Standing(Candidacy),
    /// Leads: the work runs.
    Leading { term: Term },
    /// Led: the check fails, and the work has been told to stop but may still run.
    Stopping {
        term: Term,
        /// Whether there is a lease to give back once the work has stopped, and to whom.
        release: Option<Release>,
    },
    /// Gives back a lease (`term`) or a candidacy (no term). No work runs.
    Resigning(Resignation),
}

/// To whom a lease is given back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Release {
    pub to: Option<NodeId>,
}

#[derive(Debug)]
pub(crate) struct Candidacy {
    pub phase: Phase,
    /// What a hint asks for that came while a request was under way: done as soon as that is answered.
    pub hinted: Option<Act>,
    /// The last renewal told how this election is: no look of its own is needed until the next one.
    pub told: bool,
    /// The last request that was made before this candidacy began: what its answer tells may be older.
    pub began_after: u64,
    /// Claims in a row that brought nothing new.
    pub failures: u32,
    /// When the lease was first seen free under this term.
    pub freed: Option<(Term, Instant)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    /// There is no session to claim under.
    Parked,
    /// Acts at this instant.
    Waiting { until: Instant, act: Act },
    /// Waits for the answer to a claim or a look.
    Asking { flight: Flight, act: Act },
}

/// What a candidate does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Reads the record.
    Look,
    /// Tells the store of a term that it has forgotten.
    Tell,
    /// Claims the lease.
    Claim { over: Option<Stamp> },
}

impl Act {
    /// A claim on a lease that may be free.
    pub const PLAIN: Self = Self::Claim { over: None };
}

#[derive(Debug)]
pub(crate) struct Resignation {
    pub term: Option<Term>,
    pub to: Option<NodeId>,
    pub attempt: u64,
    pub step: Step,
    pub failures: u32,
    /// What comes after.
    pub then: Then,
}

/// What a node does once it has given back what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing.
    Rest,
    /// The user has asked to stand meanwhile: a new candidacy.
    Stand,
    /// The candidacy goes on: it was only withdrawn from the store, for as long as this node is unhealthy.
    GoOn,
}

/// A request that is repeated until it is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Asking(Flight),
    Pausing { until: Instant },
}

impl Step {
    pub fn wake(&self) -> Option<Instant> {
        match self {
            Self::Asking(flight) => flight.give_up,
            Self::Pausing { until } => Some(*until),
        }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        self.wake().is_some_and(|at| at <= now)
    }

    pub fn is(&self, serial: u64) -> bool {
        matches!(self, Self::Asking(flight) if flight.serial == serial)
    }
}

#[derive(Debug)]
pub(crate) struct Election {
    pub role: Role,
    /// The user wants to hear of every change of leader.
    pub observed: bool,
    /// The highest term that this node has ever seen here.
    pub highest: Term,
    /// The highest term seen in this epoch of trust: a lower one means that the store went back.
    pub seen: (u32, Term),
    /// The last request that was made before that term was seen: its answer may be older.
    pub seen_after: u64,
    /// The last term that this node led under. It never leads under it again.
    pub led: Term,
    /// The term at first sight, from which the end of the election is told.
    pub since: Option<Term>,
    pub silence: Silence,
    /// Whom the last event named as leader.
    pub announced: Option<(NodeId, Term)>,
    /// A look by a leader or an observer.
    pub look: Option<Flight>,
    pub look_again: bool,
    /// When an observer looks next.
    pub look_at: Option<Instant>,
    /// When the armed timer fires; timers for another instant are stale.
    pub armed: Option<Instant>,
}

impl Election {
    pub fn new() -> Self {
        Self {
            role: Role::Idle,
            observed: false,
            highest: Term::NONE,
            seen: (0, Term::NONE),
            seen_after: 0,
            led: Term::NONE,
            since: None,
            silence: Silence::default(),
            announced: None,
            look: None,
            look_again: false,
            look_at: None,
            armed: None,
        }
    }

    /// The highest term seen in this epoch of trust.
    pub fn seen_in(&self, epoch: u32) -> Term {
        if self.seen.0 == epoch { self.seen.1 } else { Term::NONE }
    }

    /// What was seen of the leader by a candidate whom the renewals tell of it.
    pub fn told(&self) -> Option<&Silence> {
        matches!(&self.role, Role::Standing(candidacy) if candidacy.told).then_some(&self.silence)
    }

    /// The role in a word, for people and for counting.
    pub fn word(&self) -> &'static str {
        match &self.role {
            Role::Idle => "idle",
            Role::Standing(Candidacy { phase: Phase::Parked, .. }) => "parked",
            Role::Standing(Candidacy { phase: Phase::Waiting { .. }, .. }) => "waiting",
            Role::Standing(Candidacy { phase: Phase::Asking { .. }, .. }) => "asking",
            Role::Leading { .. } => "leading",
            Role::Stopping { .. } => "stopping",
            Role::Resigning(_) => "resigning",
        }
    }

    /// When this election wants to be woken next.
    pub fn wake(&self) -> Option<Instant> {
        let role = match &self.role {
            Role::Standing(Candidacy { phase: Phase::Waiting { until, .. }, .. }) => Some(*until),
            Role::Standing(Candidacy { phase: Phase::Asking { flight, .. }, .. }) => flight.give_up,
            Role::Resigning(resignation) => resignation.step.wake(),
            Role::Standing(_) | Role::Idle | Role::Leading { .. } | Role::Stopping { .. } => None,
        };
        let look = self.look.map_or(self.look_at, |flight| flight.give_up);
        role.into_iter().chain(look).min()
    }
}
