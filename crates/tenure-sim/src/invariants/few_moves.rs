//! No more partitions are moved at a time than allowed.

use super::{Doubt, Invariant};
use crate::fact::Fact;
use crate::world::World;

/// Judged at every revocation that a coordinator writes. A store that has just gone back may have forgotten that
/// others, which the coordinator rightly believed to be over, were.
#[derive(Default)]
pub struct FewMoves {
    doubt: Doubt,
}

impl Invariant for FewMoves {
    fn promise(&self) -> &'static str {
        "few moves at a time"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.doubt.note(fact, world);
        let (Fact::Published { moving, revoked: true, .. }, Some(division)) = (fact, &world.config.division)
        else {
            return Ok(());
        };
        if *moving > division.moves as usize && !self.doubt.lately(world) {
            return Err(format!("{moving} partitions are being revoked, and {} may be", division.moves));
        }
        Ok(())
    }
}
