//! A term belongs to one process life: a restart never inherits a lease.

use std::collections::HashMap;

use tenure_core::{Event, Term};

use super::{Invariant, NewTerms};
use crate::fact::Fact;
use crate::world::World;

/// Remembers who led under which term. One that a store has forgotten it may grant again.
#[derive(Default)]
pub struct OneProcess {
    led: HashMap<(usize, Term), (usize, u32)>,
    terms: NewTerms,
}

impl Invariant for OneProcess {
    fn promise(&self) -> &'static str {
        "one process per term"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.terms.note(fact, world);
        if let Fact::Said { node, life, event: Event::Elected { election, term } } = fact {
            let e = election.index();
            let first = *self.led.entry((e, *term)).or_insert((*node, *life));
            if first != (*node, *life) && self.terms.is_new(e, *term) {
                return Err(format!("n{node} leads e{e} under term {term}, as n{} did", first.0));
            }
        }
        Ok(())
    }
}
