//! A lease that was handed over to a named candidate is kept for it, for a ttl.

use super::{Invariant, NewTerms};
use crate::clock::{Real, nanos};
use crate::fact::Fact;
use crate::world::World;

/// Remembers when leases of new terms were freed.
#[derive(Default)]
pub struct Heir {
    freed: Vec<Option<Real>>,
    terms: NewTerms,
}

impl Invariant for Heir {
    fn promise(&self) -> &'static str {
        "the heir comes first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.freed.resize(world.config.elections, None);
        self.terms.note(fact, world);
        match fact {
            Fact::RolledBack { .. } => self.freed.fill(None),
            Fact::Freed { election, .. } => {
                self.freed[*election] = Some(world.real).filter(|_| self.terms.last_is_new(*election));
            }
            Fact::Granted { election, node, heir: Some(heir), at, .. } if heir != node => {
                let Some(freed) = self.freed[*election] else { return Ok(()) };
                let kept = at - freed;
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
