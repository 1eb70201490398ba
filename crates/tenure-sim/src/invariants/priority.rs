//! Higher priority stands first: a lesser candidate leaves a freed lease to it for a moment.

use tenure_core::Succession;

use super::Invariant;
use crate::clock::{Real, nanos};
use crate::fact::Fact;
use crate::world::World;

/// Remembers when leases were freed.
#[derive(Default)]
pub struct Priority {
    freed: Vec<Option<Real>>,
    rolled_back: bool,
}

impl Invariant for Priority {
    fn promise(&self) -> &'static str {
        "higher priority first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.freed.resize(world.config.elections, None);
        match fact {
            // The same term may come free twice.
            Fact::RolledBack { .. } => self.rolled_back = true,
            Fact::Freed { election, .. } => self.freed[*election] = Some(world.real),
            Fact::Granted { election, node, heir, at, .. }
                if world.config.capabilities.succession == Succession::Race =>
            {
                let mine = world.nodes[*node].config.priority;
                let best = world.store.standing(*election).map(|(_, priority)| priority).max();
                let courtesy = world.config.shortest(nanos(world.nodes[*node].config.ttl)) / 20;
                if let Some(freed) = self.freed[*election]
                    && *heir != Some(*node)
                    && !self.rolled_back
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
