//! S2: terms strictly rise; no term is granted twice, not even after the store went back in time, as
//! long as somebody remembers.

use tenure_core::Term;

use super::Invariant;
use crate::clock::Real;
use crate::fact::Fact;
use crate::world::World;

/// Remembers what was granted: ever, and since the store last went back. Whatever it has forgotten, from then on its
/// terms strictly rise again; and once they are above all that were ever granted, everything is as it was before.
#[derive(Default)]
pub struct TermsRise {
    highest: Vec<Term>,
    highest_since: Vec<Term>,
    rolled_back: Option<Real>,
}

impl Invariant for TermsRise {
    fn promise(&self) -> &'static str {
        "S2 terms rise"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.highest.resize(world.config.elections, Term::NONE);
        self.highest_since.resize(world.config.elections, Term::NONE);
        match fact {
            Fact::RolledBack { .. } => {
                self.rolled_back = Some(world.real);
                self.highest_since.fill(Term::NONE);
            }
            Fact::Granted { election, node, term, .. } => {
                let since = std::mem::replace(&mut self.highest_since[*election], *term);
                let ever = self.highest[*election];
                self.highest[*election] = ever.max(*term);
                if *term <= since {
                    return Err(format!("term {term} of e{election} is granted to n{node}, after {since}"));
                }
                return match self.rolled_back {
                    _ if *term > ever => Ok(()),
                    Some(rolled_back) => remembered(*election, *term, rolled_back, world),
                    None => Err(format!("term {term} of e{election} is granted again, to n{node}")),
                };
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
        let connected = world.real.saturating_sub(node.connected_since.max(since))
            > world.config.longest(world.config.ttl) * 3;
        let seen = machine.highest(node.keys[election]);
        let stands = matches!(node.role(election), "waiting");
        if connected && stands && !node.paused && term <= seen {
            return Err(format!("term {term} of e{election} is granted, but n{n} has seen {seen}"));
        }
    }
    Ok(())
}
