//! After a leader's loss a candidate waits for its take-over delay.

use super::{Invariant, shortest};
use crate::clock::{Real, nanos};
use crate::fact::{Fact, Freed};
use crate::world::World;

/// Remembers when leaders were lost, at the earliest.
#[derive(Default)]
pub struct TakeoverDelay {
    lapsed: Option<Real>,
    lost: Vec<Option<Real>>,
}

impl Invariant for TakeoverDelay {
    fn promise(&self) -> &'static str {
        "the take-over delay is kept"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.lost.resize(world.config.elections, None);
        match fact {
            Fact::RolledBack => self.lost.fill(None),
            Fact::Deleted { election } => self.lost[*election] = None,
            Fact::Retired { applied, ttl, .. } => self.lapsed = Some(applied + shortest(nanos(*ttl))),
            Fact::Freed { election, how, .. } => {
                let lapsed = self.lapsed.filter(|_| *how == Freed::Lapsed);
                self.lost[*election] = Some(lapsed.unwrap_or(world.real));
            }
            Fact::Granted { election, node, heir, at, .. } => {
                let delay = nanos(world.nodes[*node].config.takeover_delay);
                let inherits = *heir == Some(*node);
                if let Some(lost) = self.lost[*election].take()
                    && !inherits
                    && *at < lost + shortest(delay)
                {
                    return Err(format!("n{node} took e{election} {} ns after its loss", at - lost));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
