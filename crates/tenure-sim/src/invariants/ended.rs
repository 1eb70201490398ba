//! The end of an election is told to its candidates: none of them is granted it without having been
//! told and having stood anew.

use super::Invariant;
use crate::clock::Real;
use crate::fact::Fact;
use crate::world::World;

/// Remembers when elections were ended. A candidate tells by the term; once terms have gone back with
/// the store, it cannot.
#[derive(Default)]
pub struct Ended {
    deleted: Vec<Option<Real>>,
    rolled_back: bool,
}

impl Invariant for Ended {
    fn promise(&self) -> &'static str {
        "the end is told"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.deleted.resize(world.config.elections, None);
        match fact {
            Fact::RolledBack { .. } => self.rolled_back = true,
            Fact::Deleted { election } => self.deleted[*election] = Some(world.real),
            Fact::Granted { election, node, life, sent, .. }
                if world.nodes[*node].life == *life && !self.rolled_back =>
            {
                let met = world.nodes[*node].acquainted[*election];
                let stands = matches!(world.nodes[*node].role(*election), "asking" | "waiting");
                if let (Some(deleted), Some(met), true) = (self.deleted[*election], met, stands)
                    && met < deleted
                    && *sent >= deleted
                {
                    return Err(format!(
                        "n{node} is granted e{election}, and was not told that it had ended"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
