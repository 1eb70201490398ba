//! Nobody steps down because the store went back in time, if it never did, or before it was met.

use tenure_core::{Event, Reason};

use super::Invariant;
use crate::clock::Real;
use crate::fact::Fact;
use crate::world::World;

/// When the store last went back. Whoever has heard nothing from before cannot notice.
#[derive(Default)]
pub struct FalseAlarm {
    rolled_back: Option<Real>,
}

impl Invariant for FalseAlarm {
    fn promise(&self) -> &'static str {
        "no false alarm"
    }

    fn judge(&mut self, fact: &Fact, world: &World) -> Result<(), String> {
        match fact {
            Fact::RolledBack { .. } => self.rolled_back = Some(world.real),
            Fact::Said { node, life, event: Event::SessionLost { reason: Reason::StoreRolledBack } }
                if *life == world.nodes[*node].life =>
            {
                let earliest = world.nodes[*node].earliest.unwrap_or(world.real);
                if self.rolled_back.is_none_or(|rolled_back| earliest > rolled_back) {
                    return Err(format!("n{node} says that the store went back in time, and it cannot know"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::Planted;

    use super::*;
    use crate::config::Config;

    #[test]
    fn who_met_the_store_after_it_went_back_cannot_have_noticed() {
        let mut world = World::new(Config::from_seed(1), Planted::default(), false);
        let mut judge = FalseAlarm::default();
        let event = Event::SessionLost { reason: Reason::StoreRolledBack };
        let alarm = Fact::Said { node: 0, life: world.nodes[0].life, event };
        assert!(judge.judge(&alarm, &world).is_err(), "it never did");
        world.real = 100;
        assert_eq!(judge.judge(&Fact::RolledBack { silent: true }, &world), Ok(()));
        world.real = 200;
        world.nodes[0].hear(150);
        assert!(judge.judge(&alarm, &world).is_err(), "it did before");
        world.nodes[0].hear(90);
        assert_eq!(judge.judge(&alarm, &world), Ok(()), "an answer from before came late");
    }
}
