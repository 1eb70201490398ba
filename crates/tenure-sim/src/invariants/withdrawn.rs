//! Whoever has withdrawn is granted nothing: no claim of it is left behind to win in its absence.

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// A grant under the session that the node goes on using, while it is nothing in that election.
#[derive(Default)]
pub struct Withdrawn {
    rolled_back: bool,
}

impl Invariant for Withdrawn {
    fn promise(&self) -> &'static str {
        "the withdrawn win nothing"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        match fact {
            Fact::RolledBack { .. } => self.rolled_back = true,
            Fact::Granted { election, node, session, .. } if !self.rolled_back => {
                let it = &world.nodes[*node];
                let staying = it.machine.as_ref().filter(|machine| !machine.is_closing());
                let current = staying.and_then(|machine| machine.session());
                if current == Some(*session) && it.role(*election) == "idle" {
                    return Err(format!("n{node} is granted e{election}, and does not stand for it"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
