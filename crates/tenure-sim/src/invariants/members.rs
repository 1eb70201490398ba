//! A node is found silent, by whoever watches the cluster, only after a full ttl without a sign of life; and no session
//! is retired while it leads.

use super::{Doubt, Invariant};
use crate::clock::nanos;
use crate::fact::Fact;
use crate::world::World;

/// Judged whenever a watching node finds another silent.
pub struct Silent;

impl Invariant for Silent {
    fn promise(&self) -> &'static str {
        "the silent were silent for a ttl"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::FoundSilent { by, session, applied, ttl, at } = fact else { return Ok(()) };
        let age = at - applied;
        if age < world.config.shortest(nanos(*ttl)) {
            return Err(format!("n{by} finds {session:?} silent after {age} ns, with a ttl of {ttl:?}"));
        }
        Ok(())
    }
}

/// Judged whenever a session is retired, by a leader that cleans up or by a candidate. A frozen machine's boot clock
/// stands still; see [`Doubt`] for what cannot be promised when a store goes back in time.
#[derive(Default)]
pub struct RetiredInTime {
    doubt: Doubt,
}

impl Invariant for RetiredInTime {
    fn promise(&self) -> &'static str {
        "no leader is retired"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.doubt.note(fact, world);
        let Fact::Retired { session, node, .. } = fact else { return Ok(()) };
        let it = &world.nodes[*node];
        let current = it.machine.as_ref().and_then(tenure_core::Machine::session);
        if current != Some(*session) || it.frozen.is_some() || self.doubt.lately(world) {
            return Ok(());
        }
        match (0..world.config.elections).find(|election| it.check(*election, world.real).is_some()) {
            Some(election) => Err(format!("{session:?} is retired while n{node} leads e{election} under it")),
            None => Ok(()),
        }
    }
}
