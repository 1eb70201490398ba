//! After a leader's loss a candidate waits for its take-over delay.

use super::{Invariant, NewTerms};
use crate::clock::{Real, nanos};
use crate::fact::{Fact, Freed};
use crate::world::World;

/// Remembers when leaders were lost, at the earliest. A candidate that waits after one loss may miss a
/// leader that came and went meanwhile, or a resignation that it has not heard of when it claims; it is not asked
/// to wait for those too. A store that went back may lose the leader of one term twice.
#[derive(Default)]
pub struct TakeoverDelay {
    lost: Vec<Option<Real>>,
    freed: Vec<Real>,
    terms: NewTerms,
    ended: Vec<bool>,
    granted: Vec<Real>,
}

impl Invariant for TakeoverDelay {
    fn promise(&self) -> &'static str {
        "the take-over delay is kept"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.lost.resize(world.config.elections, None);
        self.freed.resize(world.config.elections, 0);
        self.ended.resize(world.config.elections, false);
        self.granted.resize(world.config.elections, 0);
        self.terms.note(fact, world);
        match fact {
            Fact::RolledBack { .. } => self.lost.fill(None),
            // An election that begins anew has lost nobody.
            Fact::Deleted { election, .. } => {
                self.lost[*election] = None;
                self.ended[*election] = true;
            }
            Fact::Freed { election, pulse: (applied, ttl), how, .. } if !self.ended[*election] => {
                self.freed[*election] = if *how == Freed::Lapsed { 0 } else { world.real };
                let lost = world.real.min(applied + world.config.shortest(nanos(*ttl)));
                self.lost[*election] = Some(lost).filter(|_| self.terms.last_is_new(*election));
            }
            Fact::Granted { election, node, next, sent, at, .. } => {
                let delay = nanos(world.nodes[*node].config.takeover_delay);
                self.ended[*election] = false;
                let before = std::mem::replace(&mut self.granted[*election], *at);
                if let Some(lost) = self.lost[*election].take()
                    && next.is_none()
                    && (*sent).min(world.nodes[*node].looked[*election]) >= self.freed[*election]
                    && lost > before + world.config.longest(delay)
                    && *at < lost + world.config.shortest(delay)
                {
                    return Err(format!("n{node} took e{election} {} ns after its loss", at - lost));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
