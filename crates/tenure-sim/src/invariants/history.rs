//! S8: transitions are recorded with what they tell, without a gap.

use super::Invariant;
use crate::fact::Fact;
use crate::store::Line;
use crate::world::World;

/// Every grant follows the end of the one before, in the history itself.
pub struct History;

impl Invariant for History {
    fn promise(&self) -> &'static str {
        "S8 history"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::Granted { election, .. } = fact else { return Ok(()) };
        let told = world.store.history(*election).iter().rev().filter(|line| **line != Line::Deleted);
        let last: Vec<Line> = told.take(3).copied().collect();
        match last[..] {
            [Line::Elected(_)] | [Line::Elected(_), Line::Lost(_) | Line::Resigned(_), ..] => Ok(()),
            _ => Err(format!("the history of e{election} ends in {last:?}, newest first")),
        }
    }
}
