//! S3: nobody is granted a lease before the last applied renewal is a full ttl old, counted slowly.

use super::Invariant;
use crate::clock::nanos;
use crate::fact::Fact;
use crate::world::World;

/// Judged where a session is retired: that is what frees its leases for others.
pub struct FullTtl;

impl Invariant for FullTtl {
    fn promise(&self) -> &'static str {
        "S3 a full ttl"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::Retired { node, applied, ttl, at, .. } = fact else { return Ok(()) };
        let age = at - applied;
        if age < world.config.shortest(nanos(*ttl)) {
            return Err(format!(
                "n{node} was retired {age} ns after its last renewal, with a ttl of {ttl:?}"
            ));
        }
        Ok(())
    }
}
