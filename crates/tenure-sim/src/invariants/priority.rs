//! Higher priority stands first: a lease that is free is granted to nobody before it.

use super::Invariant;
use crate::fact::Fact;
use crate::world::World;

/// Compares whoever is granted what it has claimed with the candidates that were renewed lately.
pub struct Priority;

impl Invariant for Priority {
    fn promise(&self) -> &'static str {
        "higher priority first"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        let Fact::Granted { election, node, next: None, .. } = fact else { return Ok(()) };
        if world.config.strict_line {
            return Ok(());
        }
        let priority = |node: usize| world.nodes[node].config.priority;
        match world.store.in_line(*election, world.moment()).find(|other| priority(*other) > priority(*node))
        {
            Some(other) => {
                Err(format!("n{node} was granted e{election} before n{other}, of higher priority"))
            }
            None => Ok(()),
        }
    }
}
