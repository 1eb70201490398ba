//! S6: resign frees a lease only after the leader's work has stopped; and nobody starts work while
//! its own former work still runs.

use tenure_core::Event;

use super::{Doubt, Invariant};
use crate::fact::{Fact, Freed};
use crate::node::Work;
use crate::world::World;

/// Judged at every release and every election. A store that has just gone back may carry out once more
/// what it has forgotten.
#[derive(Default)]
pub struct StoppedFirst {
    doubt: Doubt,
}

impl Invariant for StoppedFirst {
    fn promise(&self) -> &'static str {
        "S6 stopped first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.doubt.note(fact, world);
        match fact {
            Fact::Freed { election, node, how, .. }
                if *how != Freed::Lapsed
                    && !self.doubt.lately(world)
                    && world.nodes[*node].work[*election] != Work::None =>
            {
                return Err(format!("the lease of e{election} is freed ({how:?}) while n{node} still works"));
            }
            Fact::Said { node, event: Event::Opened { .. }, .. }
                if world.nodes[*node].work.contains(&Work::Stopping) =>
            {
                return Err(format!("n{node} opens a session while work of the former one still runs"));
            }
            _ => {}
        }
        Ok(())
    }
}
