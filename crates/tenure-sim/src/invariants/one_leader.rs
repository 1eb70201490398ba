//! S1: at any instant at most one process per election passes its leadership check.

use super::{Doubt, Invariant};
use crate::fact::Fact;
use crate::world::World;

/// Two can only lead at once if one becomes leader while another still is: checked at every grant
/// and after every input. A frozen machine's boot clock stands still, which breaks assumption A1;
/// what is promised there is that it steps down before it does anything. See [`Doubt`]
/// for what cannot be promised when a store goes back in time.
#[derive(Default)]
pub struct OneLeader {
    doubt: Doubt,
}

impl Invariant for OneLeader {
    fn promise(&self) -> &'static str {
        "S1 one leader"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.doubt.note(fact, world);
        let Fact::Settled { node, .. } = fact else { return Ok(()) };
        if self.doubt.excuses(*node, world) {
            return Ok(());
        }
        for election in 0..world.config.elections {
            if world.nodes[*node].check(election, world.real).is_none() {
                continue;
            }
            for (other, rival) in world.nodes.iter().enumerate() {
                if other == *node || rival.paused || self.doubt.excuses(other, world) {
                    continue;
                }
                if let Some(term) = rival.check(election, world.real) {
                    return Err(format!("n{node} and n{other} (term {term}) both lead e{election}"));
                }
            }
        }
        Ok(())
    }
}
