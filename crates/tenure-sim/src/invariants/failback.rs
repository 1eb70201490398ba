//! Only a candidate asks a leader to make way for it, and only one of lower priority.

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Judged when the request is sent. What it finds when it arrives, nobody can know.
pub struct MakesWay;

impl Invariant for MakesWay {
    fn promise(&self) -> &'static str {
        "failback is for the preferred"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::AskedToMakeWay { node, election, leader, stood } = fact else { return Ok(()) };
        if !stood {
            return Err(format!("n{node} asks n{leader} to make way in e{election}, and does not stand"));
        }
        let priority = |node: usize| world.nodes[node].config.priority;
        if priority(*node) <= priority(*leader) {
            return Err(format!("n{node} asks n{leader} to make way in e{election}, and is not preferred"));
        }
        Ok(())
    }
}
