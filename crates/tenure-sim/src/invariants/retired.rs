//! A session that was taken for dead stays dead: it renews nothing and is granted nothing.

use std::collections::HashSet;

use tenure_core::SessionId;

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Remembers who was retired.
#[derive(Default)]
pub struct Retired {
    dead: HashSet<SessionId>,
}

impl Invariant for Retired {
    fn promise(&self) -> &'static str {
        "the retired stay retired"
    }

    fn judge(&mut self, fact: &Fact, _world: &World) -> Result<(), String> {
        match fact {
            Fact::RolledBack { .. } => self.dead.clear(),
            Fact::Retired { session, .. } => {
                self.dead.insert(*session);
            }
            Fact::Renewed { session, node, .. } | Fact::Granted { session, node, .. }
                if self.dead.contains(session) =>
            {
                return Err(format!("n{node} goes on under {session:?}, which was retired"));
            }
            _ => {}
        }
        Ok(())
    }
}
