//! A leader whose renewals fail says that it is in jeopardy before it lapses.

use tenure_core::{Event, Reason};

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// What each node knows and has said since its last good renewal.
#[derive(Default)]
pub struct Jeopardy {
    failed: Vec<bool>,
    said: Vec<bool>,
}

impl Invariant for Jeopardy {
    fn promise(&self) -> &'static str {
        "jeopardy is said"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.failed.resize(world.nodes.len(), false);
        self.said.resize(world.nodes.len(), false);
        match fact {
            Fact::Unrenewed { node }
                if world.nodes[*node].machine.as_ref().is_some_and(|m| m.session().is_some()) =>
            {
                self.failed[*node] = true;
            }
            Fact::Said { node, event, .. } => match event {
                Event::InJeopardy { .. } => self.said[*node] = true,
                Event::SessionLost { reason: Reason::Lapsed } if self.failed[*node] && !self.said[*node] => {
                    return Err(format!("n{node} lapsed after failed renewals without a word"));
                }
                Event::Opened { .. } | Event::Recovered => {
                    self.failed[*node] = false;
                    self.said[*node] = false;
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}
