//! A node that is not eligible never leads.

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Judged at every grant.
pub struct Eligible;

impl Invariant for Eligible {
    fn promise(&self) -> &'static str {
        "only the eligible lead"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        match fact {
            Fact::Granted { election, node, .. } if !world.nodes[*node].config.eligible => {
                Err(format!("n{node} is granted e{election} and is not eligible"))
            }
            _ => Ok(()),
        }
    }
}
