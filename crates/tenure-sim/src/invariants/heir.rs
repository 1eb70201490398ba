//! A lease that was handed over to a named candidate is kept for it, for a ttl.

use super::Invariant;
use crate::clock::{Real, nanos};
use crate::fact::Fact;
use crate::world::World;

/// Remembers when leases were freed.
#[derive(Default)]
pub struct Heir {
    freed: Vec<Real>,
    rolled_back: bool,
}

impl Invariant for Heir {
    fn promise(&self) -> &'static str {
        "the heir comes first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.freed.resize(world.config.elections, 0);
        match fact {
            Fact::RolledBack { .. } => self.rolled_back = true,
            Fact::Freed { election, .. } => self.freed[*election] = world.real,
            Fact::Granted { election, node, heir: Some(heir), at, .. }
                if heir != node && !self.rolled_back =>
            {
                let kept = at - self.freed[*election];
                if kept < world.config.shortest(nanos(world.nodes[*node].config.ttl)) {
                    return Err(format!(
                        "e{election} was kept for n{heir}, and granted to n{node} after {kept} ns"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
