//! S6: resign frees a lease only after the leader's work has stopped; and nobody starts work while
//! its own former work still runs.

use tenure_core::Event;

use super::Invariant;
use crate::fact::{Fact, Freed};
use crate::node::Work;
use crate::world::World;

/// Judged at every release and every election.
pub struct StoppedFirst;

impl Invariant for StoppedFirst {
    fn promise(&self) -> &'static str {
        "S6 stopped first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        match fact {
            Fact::Freed { election, node, how, .. } if *how != Freed::Lapsed => {
                if world.nodes[*node].work[*election] != Work::None {
                    return Err(format!(
                        "the lease of e{election} is freed ({how:?}) while n{node} still works"
                    ));
                }
            }
            Fact::Said { node, event: Event::Opened { .. }, .. }
                if world.nodes[*node].work.iter().any(|work| *work == Work::Stopping) =>
            {
                return Err(format!("n{node} opens a session while work of the former one still runs"));
            }
            _ => {}
        }
        Ok(())
    }
}
