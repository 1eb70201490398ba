//! What must hold, whatever happens: one promise per file.

use crate::clock::Real;
use crate::fact::Fact;
use crate::world::World;

mod cost;
mod eligible;
mod ended;
mod full_ttl;
mod healthy;
mod heir;
mod history;
mod jeopardy;
mod never_returns;
mod one_leader;
mod one_process;
mod priority;
mod session_loss;
mod stopped_first;
mod takeover_delay;
mod terms_rise;
mod told_to_stop;

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
        Box::new(stopped_first::StoppedFirst),
        Box::new(one_process::OneProcess::default()),
        Box::new(history::History::default()),
        Box::new(eligible::Eligible),
        Box::new(healthy::Healthy),
        Box::new(heir::Heir::default()),
        Box::new(priority::Priority::default()),
        Box::new(takeover_delay::TakeoverDelay::default()),
        Box::new(ended::Ended::default()),
        Box::new(jeopardy::Jeopardy::default()),
        Box::new(session_loss::SessionLoss),
        Box::new(cost::Cost::default()),
    ]
}

/// Since when the store's past is in doubt, and for whom.
///
/// Whoever knew the store notices that it went back, and waits. Two cannot: anybody, if nothing tells;
/// and a process that met the store only afterwards, and knew nothing. For a while after, their leadership
/// may overlap with one from before; the documentation says so.
#[derive(Default)]
pub(crate) struct Doubt {
    rolled_back: Option<(Real, bool)>,
}

impl Doubt {
    /// Takes note of a roll-back.
    pub(crate) fn note(&mut self, fact: &Fact, world: &World) {
        if let Fact::RolledBack { silent } = fact {
            let silent = *silent || self.silently(world);
            self.rolled_back = Some((world.real, silent));
        }
    }

    /// Whether the store went back lately.
    pub(crate) fn lately(&self, world: &World) -> bool {
        self.rolled_back.is_some_and(|(at, _)| world.real < at + longest(world.config.ttl) * 2)
    }

    fn silently(&self, world: &World) -> bool {
        self.lately(world) && self.rolled_back.is_some_and(|(_, silent)| silent)
    }

    /// Whether this node cannot have known.
    pub(crate) fn excuses(&self, node: usize, world: &World) -> bool {
        let newcomer =
            self.rolled_back.is_some_and(|(at, _)| world.nodes[node].met.is_none_or(|met| met >= at));
        self.silently(world) || (self.lately(world) && newcomer)
    }
}

/// The shortest real time in which any clock that keeps assumption A1 counts `duration`.
#[must_use]
pub fn shortest(duration: u64) -> u64 {
    duration * 1000 / 1100
}

/// The longest real time in which any clock that keeps assumption A1 counts `duration`.
#[must_use]
pub fn longest(duration: u64) -> u64 {
    (duration * 1000).div_ceil(900)
}
