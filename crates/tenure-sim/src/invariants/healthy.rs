//! A node whose application is unwell leads nothing.

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Judged after every input.
pub struct Healthy;

impl Invariant for Healthy {
    fn promise(&self) -> &'static str {
        "the unwell do not lead"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::Settled { node, .. } = fact else { return Ok(()) };
        if world.nodes[*node].ails.unwell == 0 {
            return Ok(());
        }
        let leads = (0..world.config.elections).find(|e| world.nodes[*node].check(*e, world.real).is_some());
        match leads {
            Some(election) => Err(format!("n{node} is unwell and leads e{election}")),
            None => Ok(()),
        }
    }
}
