//! S4: before anyone else is granted, the old holder's check is false and its work was told to stop.

use super::Invariant;
use crate::fact::Fact;
use crate::node::Work;
use crate::world::World;

/// A process that is stopped cannot be told anything; its check must be false all the same.
pub struct ToldToStop;

impl Invariant for ToldToStop {
    fn promise(&self) -> &'static str {
        "S4 told to stop first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::Granted { election, node, at, .. } = fact else { return Ok(()) };
        for (other, rival) in world.nodes.iter().enumerate() {
            if other == *node || rival.machine.is_none() {
                continue;
            }
            let frozen = rival.paused && rival.clock.read(*at) == rival.clock.read(*at + 1_000_000);
            if !frozen && rival.check(*election, *at).is_some() {
                return Err(format!("n{node} is granted e{election} while n{other} passes its check"));
            }
            if !rival.paused && rival.work[*election] == Work::Running {
                return Err(format!("n{node} is granted e{election}, and n{other} was not told to stop"));
            }
        }
        Ok(())
    }
}
