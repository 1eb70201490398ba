//! S5: a lease that lapsed locally never leads again, even if a late "OK" arrives.

use std::collections::HashMap;

use tenure_core::Term;

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Remembers the last term under which each node passed its check, and whether it failed since.
#[derive(Default)]
pub struct NeverReturns {
    led: HashMap<(usize, u32, usize), (Term, bool)>,
}

impl Invariant for NeverReturns {
    fn promise(&self) -> &'static str {
        "S5 never returns"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let (Fact::Settled { node } | Fact::Wakes { node }) = fact else { return Ok(()) };
        let life = world.nodes[*node].life;
        for election in 0..world.config.elections {
            let now = world.nodes[*node].check(election, world.real);
            let key = (*node, life, election);
            match (self.led.get_mut(&key), now) {
                (Some((term, over)), Some(again)) if *term == again => {
                    if *over {
                        return Err(format!("n{node} leads e{election} under term {term} again"));
                    }
                }
                (_, Some(term)) => {
                    self.led.insert(key, (term, false));
                }
                (Some((_, over)), None) => *over = true,
                (None, None) => {}
            }
        }
        Ok(())
    }
}
