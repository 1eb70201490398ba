//! S7: what a coordinator of an older term writes is refused; and fencing tokens of partitions rise.

use std::collections::BTreeMap;

use tenure_core::Term;
use tenure_core::partitions::{Partition, Revision};

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// A store that went back has forgotten what it wrote: terms and tokens rise from there.
#[derive(Default)]
pub struct Plans {
    granted: Term,
    tokens: BTreeMap<Partition, Revision>,
}

impl Invariant for Plans {
    fn promise(&self) -> &'static str {
        "S7 plans are fenced"
    }

    fn judge(&mut self, fact: &Fact, _: &World) -> Result<(), String> {
        match fact {
            Fact::RolledBack { .. } => *self = Self::default(),
            Fact::Granted { term, .. } => self.granted = *term,
            Fact::Published { term, .. } if *term < self.granted => {
                let granted = self.granted;
                return Err(format!("term {term} wrote into the ledger after term {granted} was granted"));
            }
            Fact::Given { partition, revision, .. } => {
                let before = self.tokens.insert(*partition, *revision).unwrap_or(0);
                if *revision <= before {
                    return Err(format!("{partition:?} is given under {revision}, after {before}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
