//! The end of an election is told to its candidates: none of them is granted it without having been
//! told and having stood anew.

use super::{Doubt, Invariant, NewTerms};
use crate::clock::Real;
use crate::fact::Fact;
use crate::world::World;

/// Remembers when elections were ended, under a new number: a candidate tells by that. It cannot by one that it may have
/// seen before the store went back, nor if it forgot what it had seen because of that.
#[derive(Default)]
pub struct Ended {
    deleted: Vec<Option<Real>>,
    terms: NewTerms,
    doubt: Doubt,
}

impl Invariant for Ended {
    fn promise(&self) -> &'static str {
        "the end is told"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.deleted.resize(world.config.elections, None);
        self.terms.note(fact, world);
        self.doubt.note(fact, world);
        match fact {
            Fact::RolledBack { .. } => self.deleted.fill(None),
            Fact::Deleted { election, number } => {
                let new = self.terms.is_new(*election, *number);
                self.deleted[*election] = Some(world.real).filter(|_| new);
            }
            Fact::Granted { election, node, life, sent, .. } if world.nodes[*node].life == *life => {
                let met =
                    world.nodes[*node].acquainted[*election].filter(|met| !self.doubt.covers(*met, world));
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
