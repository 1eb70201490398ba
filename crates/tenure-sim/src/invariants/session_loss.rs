//! Whoever is told that its session is over leads nothing from then on.

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Judged when the word arrives.
pub struct SessionLoss;

impl Invariant for SessionLoss {
    fn promise(&self) -> &'static str {
        "no session, no leadership"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::ToldSessionLost { node } = fact else { return Ok(()) };
        match (0..world.config.elections).find(|e| world.nodes[*node].check(*e, world.real).is_some()) {
            Some(election) => Err(format!("n{node} knows that its session is over, and leads e{election}")),
            None => Ok(()),
        }
    }
}
