//! A lease that is given up is passed on to the next candidate, and to no other.

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Compares every lease that was passed on with the candidate that came next.
#[derive(Default)]
pub struct Succession;

impl Invariant for Succession {
    fn promise(&self) -> &'static str {
        "the next candidate succeeds"
    }

    fn judge(&mut self, fact: &Fact, _: &World) -> Result<(), String> {
        match fact {
            Fact::Granted { election, node, next: Some(next), .. } if next != node => {
                Err(format!("e{election} was passed on to n{node}, although n{next} was next"))
            }
            _ => Ok(()),
        }
    }
}
