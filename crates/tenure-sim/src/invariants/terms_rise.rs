//! S2: terms strictly rise; no term is granted twice, not even after the store went back in time, as
//! long as somebody remembers.

use std::collections::HashSet;

use tenure_core::Term;

use super::{Invariant, longest};
use crate::clock::Real;
use crate::fact::Fact;
use crate::world::World;

/// Remembers what was granted.
#[derive(Default)]
pub struct TermsRise {
    granted: HashSet<(usize, Term)>,
    highest: Vec<Term>,
    rolled_back: Option<Real>,
}

impl Invariant for TermsRise {
    fn promise(&self) -> &'static str {
        "S2 terms rise"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.highest.resize(world.config.elections, Term::NONE);
        match fact {
            Fact::RolledBack { .. } => self.rolled_back = Some(world.real),
            Fact::Granted { election, node, term, .. } => {
                let fresh = self.granted.insert((*election, *term));
                let highest = self.highest[*election].max(*term);
                let rises = *term > std::mem::replace(&mut self.highest[*election], highest);
                let Some(since) = self.rolled_back else {
                    if fresh && rises {
                        return Ok(());
                    }
                    return Err(format!("term {term} of e{election} is granted again, to n{node}"));
                };
                return remembered(*election, *term, since, world);
            }
            _ => {}
        }
        Ok(())
    }
}

/// After a roll-back, whoever remembers a higher term and has reached the store for long enough has
/// told it.
fn remembered(election: usize, term: Term, since: Real, world: &World) -> Result<(), String> {
    for (n, node) in world.nodes.iter().enumerate() {
        let Some(machine) = &node.machine else { continue };
        let connected =
            world.real.saturating_sub(node.connected_since.max(since)) > longest(world.config.ttl) * 3;
        let seen = machine.highest(node.keys[election]);
        let stands = matches!(node.role(election), "waiting");
        if connected && stands && !node.paused && term <= seen {
            return Err(format!("term {term} of e{election} is granted, but n{n} has seen {seen}"));
        }
    }
    Ok(())
}
