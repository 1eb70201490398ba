//! S7: a partition is released, and a session is given up, only after the work on it has stopped.

use super::{Doubt, Invariant};
use crate::fact::Fact;
use crate::node::Work;
use crate::world::World;

/// Judged where an acknowledgement takes effect, and where a session is closed or superseded. A store that has
/// just gone back may carry out once more what it has forgotten.
#[derive(Default)]
pub struct Released {
    doubt: Doubt,
}

impl Invariant for Released {
    fn promise(&self) -> &'static str {
        "S7 released once stopped"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        self.doubt.note(fact, world);
        let (node, life, one) = match fact {
            _ if self.doubt.lately(world) => return Ok(()),
            Fact::Released { partition, node, life } => (*node, *life, Some(*partition)),
            Fact::GivenUp { node, life } => (*node, *life, None),
            _ => return Ok(()),
        };
        let Some(desk) = world.nodes[node].desk.as_ref().filter(|_| world.nodes[node].life == life) else {
            return Ok(());
        };
        let busy = |(partition, work): &(&_, &Work)| {
            one.is_none_or(|one| one == **partition) && **work != Work::None
        };
        match desk.work.iter().find(busy) {
            Some((partition, _)) => {
                Err(format!("n{node} lets go of {partition:?} while its work still runs"))
            }
            None => Ok(()),
        }
    }
}
