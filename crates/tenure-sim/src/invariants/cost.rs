//! One write per interval keeps a session, whatever hangs from it.

use super::Invariant;
use crate::clock::{Real, nanos};
use crate::fact::Fact;
use crate::world::World;

/// Counts the renewals of each life while everything is calm.
#[derive(Default)]
pub struct Cost {
    counts: Vec<(u32, Real, u64)>,
}

impl Invariant for Cost {
    fn promise(&self) -> &'static str {
        "one write per interval"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::Renewed { node, life, .. } = fact else { return Ok(()) };
        self.counts.resize(world.nodes.len(), (0, 0, 0));
        let (counted, since, renewals) = &mut self.counts[*node];
        if counted != life || !world.calm {
            (*counted, *since, *renewals) = (*life, world.real, 0);
            return Ok(());
        }
        *renewals += 1;
        let every = world.config.shortest(nanos(world.nodes[*node].config.renew_every));
        let intervals = (world.real - *since) / every;
        // A few more while the store is away for a moment and comes back, and until a candidate keeps step with a
        // leader, whose interval may be a tenth shorter by our clock.
        if *renewals > intervals * 10 / 9 + 8 {
            return Err(format!("n{node} renewed {renewals} times in {intervals} intervals"));
        }
        Ok(())
    }
}
