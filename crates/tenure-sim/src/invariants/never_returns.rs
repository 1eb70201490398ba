//! S5: a lease that lapsed locally never leads again, even if a late "OK" arrives.

use tenure_core::Term;

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Remembers the last term under which each node passed its check, and whether it failed since.
#[derive(Default)]
pub struct NeverReturns {
    led: Vec<Led>,
}

#[derive(Clone, Copy, Default)]
struct Led {
    life: u32,
    term: Term,
    over: bool,
}

impl Invariant for NeverReturns {
    fn promise(&self) -> &'static str {
        "S5 never returns"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let (Fact::Settled { node, leads } | Fact::Wakes { node, leads }) = fact else { return Ok(()) };
        let elections = world.config.elections;
        self.led.resize(world.nodes.len() * elections, Led::default());
        let life = world.nodes[*node].life;
        for (election, term) in leads.iter().take(elections).enumerate() {
            let led = &mut self.led[*node * elections + election];
            match *term {
                Some(term) if led.life == life && led.term == term => {
                    if led.over {
                        return Err(format!("n{node} leads e{election} under term {term} again"));
                    }
                }
                Some(term) => *led = Led { life, term, over: false },
                None => led.over = true,
            }
        }
        Ok(())
    }
}
