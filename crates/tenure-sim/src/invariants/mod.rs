//! What must hold, whatever happens: one promise per file.

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
        Box::new(one_leader::OneLeader),
        Box::new(terms_rise::TermsRise::default()),
        Box::new(full_ttl::FullTtl),
        Box::new(told_to_stop::ToldToStop),
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
