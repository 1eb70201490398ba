//! S7: a partition has at most one owner: given away only after the old owner acknowledged, or its session
//! was over.

use tenure_core::partitions::Partition;

use super::{Doubt, Invariant};
use crate::fact::Fact;
use crate::node::Work;
use crate::world::World;

/// Judged at every gift and after every input: nobody else passes its check, and all other work was told to
/// stop; and nobody lets go what it still works on. See [`Doubt`] for what cannot be promised when a
/// store goes back in time.
#[derive(Default)]
pub struct OneOwner {
    doubt: Doubt,
}

impl OneOwner {
    fn given(&self, partition: Partition, to: usize, world: &World) -> Result<(), String> {
        for (other, rival) in world.nodes.iter().enumerate() {
            if other == to || self.doubt.excuses(other, world) || self.doubt.excuses(to, world) {
                continue;
            }
            let frozen = rival.frozen.is_some();
            if !frozen && world.owns(other, partition).is_some() {
                return Err(format!("n{to} is given {partition:?} while n{other} passes its check"));
            }
            let works = rival.desk.as_ref().and_then(|desk| desk.work.get(&partition));
            // A process that has just been continued finds out as soon as its driver is woken.
            let awake = !rival.paused && world.real > rival.resumed + world.config.latency;
            if awake && works == Some(&Work::Running) {
                return Err(format!("n{to} is given {partition:?} while n{other} works on it, untold"));
            }
        }
        Ok(())
    }

    fn owned_once(&self, node: usize, world: &World) -> Result<(), String> {
        let Some(desk) = &world.nodes[node].desk else { return Ok(()) };
        for partition in desk.work.keys().copied() {
            if world.owns(node, partition).is_none() || self.doubt.excuses(node, world) {
                continue;
            }
            for (other, rival) in world.nodes.iter().enumerate() {
                if other == node || rival.paused || self.doubt.excuses(other, world) {
                    continue;
                }
                if world.owns(other, partition).is_some() {
                    return Err(format!("n{node} and n{other} both own {partition:?}"));
                }
            }
        }
        Ok(())
    }
}

impl Invariant for OneOwner {
    fn promise(&self) -> &'static str {
        "S7 one owner"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        if world.config.division.is_none() {
            return Ok(());
        }
        self.doubt.note(fact, world);
        match fact {
            Fact::Given { partition, node, over: Some(other), .. } => {
                Err(format!("n{node} is given {partition:?} that n{other} has not released"))
            }
            // Nobody acts upon what a store gives that has just gone back.
            Fact::Given { .. } if self.doubt.lately(world) => Ok(()),
            Fact::Given { partition, node, .. } => self.given(*partition, *node, world),
            Fact::Settled { node, .. } => self.owned_once(*node, world),
            _ => Ok(()),
        }
    }
}
