//! Higher priority stands first: a lesser candidate leaves a freed lease to it for a moment.

use tenure_core::Succession;

use super::{Invariant, NewTerms};
use crate::clock::{Real, nanos};
use crate::fact::Fact;
use crate::world::World;

/// Remembers when leases of new terms were freed.
#[derive(Default)]
pub struct Priority {
    freed: Vec<Option<Real>>,
    terms: NewTerms,
}

impl Invariant for Priority {
    fn promise(&self) -> &'static str {
        "higher priority first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.freed.resize(world.config.elections, None);
        self.terms.note(fact, world);
        match fact {
            // The same term may come free twice.
            Fact::RolledBack { .. } => self.freed.fill(None),
            Fact::Freed { election, .. } => {
                self.freed[*election] = Some(world.real).filter(|_| self.terms.last_is_new(*election));
            }
            Fact::Granted { election, node, next, at, .. }
                if world.config.capabilities.succession == Succession::Race =>
            {
                let mine = world.nodes[*node].config.priority;
                let best = world.store.standing(*election).map(|(_, priority)| priority).max();
                let courtesy = world.config.shortest(nanos(world.nodes[*node].config.ttl)) / 20;
                if let Some(freed) = self.freed[*election]
                    && next.is_none()
                    && best.is_some_and(|best| best > mine)
                    && at - freed < courtesy
                {
                    return Err(format!("n{node} took e{election} before a candidate of higher priority"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
