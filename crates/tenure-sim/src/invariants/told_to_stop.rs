//! S4: before anyone else is granted, the old holder's check is false and its work was told to stop.

use tenure_core::Event;

use super::{Doubt, Invariant};
use crate::fact::Fact;
use crate::node::Work;
use crate::world::World;

/// A process that is stopped cannot be told anything; its check must be false all the same. A store
/// that went back in time may still grant to whoever had asked before it knew; such a grant is not acted upon, so there
/// the election itself is judged.
#[derive(Default)]
pub struct ToldToStop {
    doubt: Doubt,
}

impl Invariant for ToldToStop {
    fn promise(&self) -> &'static str {
        "S4 told to stop first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.doubt.note(fact, world);
        let (election, node) = match fact {
            Fact::Granted { election, node, .. } if !self.doubt.lately(world) => (*election, *node),
            Fact::Said { node, event: Event::Elected { election, .. }, .. } => (election.index(), *node),
            _ => return Ok(()),
        };
        if self.doubt.excuses(node, world) {
            return Ok(());
        }
        for (other, rival) in world.nodes.iter().enumerate() {
            if other == node || rival.machine.is_none() || self.doubt.excuses(other, world) {
                continue;
            }
            if rival.frozen.is_none() && rival.check(election, world.real).is_some() {
                return Err(format!("n{node} is granted e{election} while n{other} passes its check"));
            }
            // A process that has just been continued finds out as soon as its driver is woken.
            let awake = !rival.paused && world.real > rival.resumed + world.config.latency;
            if awake && rival.work[election] == Work::Running {
                return Err(format!("n{node} is granted e{election}, and n{other} was not told to stop"));
            }
        }
        Ok(())
    }
}
