//! Nobody steps down because the store went back in time, if it never did.

use tenure_core::{Event, Reason};

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Whether the store ever went back.
#[derive(Default)]
pub struct FalseAlarm {
    rolled_back: bool,
}

impl Invariant for FalseAlarm {
    fn promise(&self) -> &'static str {
        "no false alarm"
    }

    fn judge(&mut self, fact: &Fact, _world: &World) -> Result<(), String> {
        match fact {
            Fact::RolledBack { .. } => self.rolled_back = true,
            Fact::Said { node, event: Event::SessionLost { reason: Reason::StoreRolledBack }, .. }
                if !self.rolled_back =>
            {
                return Err(format!("n{node} says that the store went back in time, and it never did"));
            }
            _ => {}
        }
        Ok(())
    }
}
