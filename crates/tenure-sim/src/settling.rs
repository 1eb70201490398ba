//! The calm phase of a run about partitions: faults have stopped, and now everything must be owned, by a plan
//! that is carried out and then stays as it is, also after a worker is killed.

use tenure_core::partitions::Partition;

use crate::clock::{Real, nanos};
use crate::invariants::Violation;
use crate::ledger::COORDINATOR;
use crate::world::{What, World};

/// Where it has got to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    #[default]
    Mend,
    Converge,
    Stay,
    Crash,
    Done,
}

/// The calm phase of a run about partitions.
#[derive(Debug, Default)]
pub struct Settling {
    step: Step,
    owners: Vec<(Partition, usize)>,
}

impl Settling {
    /// Takes the next step. `Ok(false)`: the run is over.
    ///
    /// # Errors
    /// The promise of progress that was broken.
    pub fn advance(&mut self, world: &mut World) -> Result<bool, Violation> {
        let ttl = world.config.longest(world.config.ttl);
        let (next, pause) = match self.step {
            Step::Mend => {
                world.mend();
                (Step::Converge, self.patience(world) + ttl * 40)
            }
            Step::Converge => {
                self.owners = owned(world, "after the faults had stopped")?;
                (Step::Stay, ttl * 2)
            }
            Step::Stay => {
                let owners = owned(world, "although nothing happened")?;
                if owners != self.owners {
                    let how = "partitions moved although nothing happened".to_owned();
                    return Err(Violation { promise: "partitions are owned", how });
                }
                self.kill_one(world);
                (Step::Crash, self.patience(world))
            }
            Step::Crash => {
                owned(world, "in time after a worker was killed")?;
                (Step::Done, 0)
            }
            Step::Done => return Ok(false),
        };
        world.trace.line(world.real, || format!("calm: {:?} is over", self.step));
        self.step = next;
        let at = world.real + pause;
        world.at(at, What::Calm);
        Ok(true)
    }

    /// How long it may take until everything is owned again: a session lapses, a node is waited for, and
    /// each partition may have to be moved in its turn, with a look and a drain.
    fn patience(&self, world: &World) -> Real {
        let Some(division) = &world.config.division else { return 0 };
        let ttl = world.config.longest(world.config.ttl);
        let all = world.partitions().len() as u64 + 1;
        ttl * 5 + nanos(division.grace) * 2 + all * ttl * 2
    }

    /// Kills a node that does not coordinate, for good.
    fn kill_one(&mut self, world: &mut World) {
        let leader = world.leader(COORDINATOR).map(|(node, _)| node);
        let victim = (0..world.nodes.len()).find(|node| Some(*node) != leader);
        if let Some(victim) = victim.filter(|_| world.nodes.len() > 2) {
            world.trace.line(world.real, || format!("calm: n{victim} is killed"));
            world.nodes[victim].kill();
            world.nodes[victim].wants.fill(false);
        }
    }
}

/// Who owns what; a violation if anything is owned by nobody, or the plan is not carried out.
fn owned(world: &World, when: &str) -> Result<Vec<(Partition, usize)>, Violation> {
    let broken = |how: String| Violation { promise: "partitions are owned", how: format!("{how} {when}") };
    let Some((leader, _)) = world.leader(COORDINATOR) else {
        return Err(broken("nobody coordinates".to_owned()));
    };
    let coordinator = world.nodes[leader].desk.as_ref().and_then(|desk| desk.coordinator.as_ref());
    if !coordinator.is_some_and(tenure_core::partitions::Coordinator::is_settled) {
        return Err(broken(format!("n{leader} has not carried out its plan")));
    }
    let mut owners = Vec::new();
    for partition in world.partitions() {
        let owner = (0..world.nodes.len()).find(|node| world.owns(*node, partition).is_some());
        owners.push((partition, owner.ok_or_else(|| broken(format!("nobody owns {partition:?}")))?));
    }
    Ok(owners)
}
