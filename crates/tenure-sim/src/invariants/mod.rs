//! What must hold, whatever happens: one promise per file.

use tenure_core::Term;

use crate::clock::{Real, nanos};
use crate::fact::Fact;
use crate::world::World;

mod cost;
mod eligible;
mod ended;
mod failback;
mod false_alarm;
mod few_moves;
mod full_ttl;
mod healthy;
mod history;
mod jeopardy;
mod members;
mod never_returns;
mod one_leader;
mod one_owner;
mod one_process;
mod plans;
mod priority;
mod released;
mod retired;
mod session_loss;
mod stopped_first;
mod succession;
mod takeover_delay;
mod terms_rise;
mod told_to_stop;
mod withdrawn;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub promise: &'static str,
    /// How.
    pub how: String,
}

/// A promise.
pub trait Invariant {
    /// Its name.
    fn promise(&self) -> &'static str;

    /// Judges what has just happened.
    ///
    /// # Errors
    /// How it was broken.
    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String>;
}

/// Every promise, with nothing seen yet.
#[must_use]
pub fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(one_leader::OneLeader::default()),
        Box::new(terms_rise::TermsRise::default()),
        Box::new(full_ttl::FullTtl),
        Box::new(told_to_stop::ToldToStop::default()),
        Box::new(never_returns::NeverReturns::default()),
        Box::new(stopped_first::StoppedFirst::default()),
        Box::new(one_process::OneProcess::default()),
        Box::new(history::History),
        Box::new(eligible::Eligible),
        Box::new(healthy::Healthy),
        Box::new(succession::Succession),
        Box::new(priority::Priority),
        Box::new(takeover_delay::TakeoverDelay::default()),
        Box::new(ended::Ended::default()),
        Box::new(jeopardy::Jeopardy::default()),
        Box::new(session_loss::SessionLoss),
        Box::new(false_alarm::FalseAlarm::default()),
        Box::new(retired::Retired::default()),
        Box::new(members::Silent),
        Box::new(members::RetiredInTime::default()),
        Box::new(failback::MakesWay),
        Box::new(withdrawn::Withdrawn::default()),
        Box::new(cost::Cost::default()),
        Box::new(one_owner::OneOwner::default()),
        Box::new(released::Released::default()),
        Box::new(plans::Plans::default()),
        Box::new(few_moves::FewMoves::default()),
    ]
}

/// Which terms are new. A store that went back may grant a term twice, and a candidate may take what it has seen of
/// the first for the second. From the first term on that is above all that there ever were, everything is as before.
#[derive(Default)]
pub(crate) struct NewTerms {
    /// Of each election: the highest number ever; the same when the store last went back; the last grant since.
    numbers: Vec<[Term; 3]>,
}

impl NewTerms {
    /// Takes note of a grant, of an election's end, or of a roll-back.
    pub(crate) fn note(&mut self, fact: &Fact, world: &World) {
        self.numbers.resize(world.config.elections, [Term::NONE; 3]);
        match fact {
            Fact::RolledBack { .. } => {
                for [highest, before, granted] in &mut self.numbers {
                    (*before, *granted) = (*highest, Term::NONE);
                }
            }
            Fact::Granted { election, term, .. } => {
                let [highest, _, granted] = &mut self.numbers[*election];
                (*highest, *granted) = ((*highest).max(*term), *term);
            }
            Fact::Deleted { election, number } => {
                let [highest, ..] = &mut self.numbers[*election];
                *highest = (*highest).max(*number);
            }
            _ => {}
        }
    }

    /// Whether this term is above all that there were when the store last went back.
    pub(crate) fn is_new(&self, election: usize, term: Term) -> bool {
        self.numbers.get(election).is_none_or(|[_, before, _]| term > *before)
    }

    /// Whether the term that was granted last is.
    pub(crate) fn last_is_new(&self, election: usize) -> bool {
        self.numbers.get(election).is_some_and(|[_, before, granted]| granted > before)
    }
}

/// Since when the store's past is in doubt, and for whom.
///
/// Whoever knew the store notices that it went back, and waits. Some cannot: anybody, if nothing tells;
/// a process that met the store only afterwards, and knew nothing; and one whose own ttl is shorter than
/// that of a leader it never heard of, so that it does not wait long enough. For a while after, their leadership
/// may overlap with one from before; the documentation says so.
#[derive(Default)]
pub(crate) struct Doubt {
    /// From the first to the last of the roll-backs that follow closely on each other.
    rolled_back: Option<(Real, Real)>,
    silent: bool,
}

impl Doubt {
    /// Takes note of a roll-back.
    pub(crate) fn note(&mut self, fact: &Fact, world: &World) {
        if let Fact::RolledBack { silent } = fact {
            let first = self.rolled_back.filter(|_| self.lately(world)).map(|(first, _)| first);
            self.silent = *silent || (first.is_some() && self.silent);
            self.rolled_back = Some((first.unwrap_or(world.real), world.real));
        }
    }

    /// Whether the store went back lately.
    pub(crate) fn lately(&self, world: &World) -> bool {
        self.covers(world.real, world)
    }

    /// Whether this was before the store went back, or not long after.
    pub(crate) fn covers(&self, at: Real, world: &World) -> bool {
        self.rolled_back.is_some_and(|(_, last)| at < last + world.config.longest(world.config.ttl) * 2)
    }

    /// Whether this node cannot have known.
    pub(crate) fn excuses(&self, node: usize, world: &World) -> bool {
        let met = world.nodes[node].met;
        let newcomer = self.rolled_back.is_some_and(|(first, _)| met.is_none_or(|met| met >= first));
        let hasty = nanos(world.nodes[node].config.ttl) < world.config.ttl;
        self.lately(world) && (self.silent || newcomer || hasty)
    }
}
