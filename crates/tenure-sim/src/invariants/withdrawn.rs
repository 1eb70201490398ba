//! Whoever has withdrawn is granted nothing: no claim of it is left behind to win in its absence.

use tenure_core::{Event, SessionId};

use super::Invariant;
use crate::clock::Real;
use crate::fact::Fact;
use crate::world::World;

/// A grant under the session that the node goes on using, while it is nothing in that election. A store that went back
/// has forgotten who withdrew before: judged are sessions that were opened since, and those who have stood anew.
#[derive(Default)]
pub struct Withdrawn {
    rolled_back: Option<Real>,
    opened: Vec<SessionId>,
}

impl Invariant for Withdrawn {
    fn promise(&self) -> &'static str {
        "the withdrawn win nothing"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        match fact {
            Fact::RolledBack { .. } => *self = Self { rolled_back: Some(world.real), opened: Vec::new() },
            Fact::Said { event: Event::Opened { session }, .. } if self.rolled_back.is_some() => {
                self.opened.push(*session);
            }
            Fact::Granted { election, node, session, .. } => {
                let it = &world.nodes[*node];
                let staying = it.machine.as_ref().filter(|machine| !machine.is_closing());
                let current = staying.and_then(|machine| machine.session());
                let stood = self.rolled_back.is_none_or(|rolled_back| it.stood[*election] > rolled_back);
                let judged = stood || self.opened.contains(session);
                if judged && current == Some(*session) && it.role(*election) == "idle" {
                    return Err(format!("n{node} is granted e{election}, and does not stand for it"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
