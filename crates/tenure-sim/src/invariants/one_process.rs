//! A term belongs to one process life: a restart never inherits a lease.

use std::collections::HashMap;

use tenure_core::{Event, Term};

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Remembers who led under which term.
#[derive(Default)]
pub struct OneProcess {
    led: HashMap<(usize, Term), (usize, u32)>,
    rolled_back: bool,
}

impl Invariant for OneProcess {
    fn promise(&self) -> &'static str {
        "one process per term"
    }

    fn judge(&mut self, fact: &Fact, _world: &World) -> Result<(), String> {
        match fact {
            Fact::RolledBack { .. } => self.rolled_back = true,
            Fact::Said { node, life, event: Event::Elected { election, term } } => {
                let first = *self.led.entry((election.index(), *term)).or_insert((*node, *life));
                if first != (*node, *life) && !self.rolled_back {
                    let e = election.index();
                    return Err(format!("n{node} leads e{e} under term {term}, as n{} did", first.0));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
