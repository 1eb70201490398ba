//! The network between each node and the store. Late all the time; now and then deaf, or closed to newcomers, but
//! never for so long that a lease could not bear it (L3).

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{Dice, Instant};
use tenure_store::clock;
use tenure_testkit::proxy::Proxy;

use super::TTL;
use crate::stores::place::Place;

/// Everything arrives so much later, each way, at most.
const LATE: Duration = Duration::from_millis(150);
/// Replies are lost, or newcomers refused, for so long at most: a fifth of the ttl.
const OUTAGE: Duration = Duration::from_secs(2);

pub struct Weather {
    /// Of each node: until when it is as it is, and whether that is an outage.
    skies: Vec<(Instant, bool)>,
    tally: BTreeMap<&'static str, u32>,
}

impl Weather {
    pub fn new(nodes: usize) -> Self {
        Self { skies: vec![(Instant::ZERO, true); nodes], tally: BTreeMap::new() }
    }

    /// Changes where it has lasted for long enough. An outage is followed by time to recover.
    pub fn change(&mut self, place: &Place, dice: &mut Dice) {
        let now = clock::now();
        for (node, sky) in self.skies.iter_mut().enumerate().filter(|(_, sky)| sky.0 <= now) {
            let was_outage = sky.1;
            let ways = place.ways(node);
            let (name, lasts) = match dice.below(10) {
                0 if !was_outage => {
                    ways.iter().for_each(Proxy::lose_replies);
                    ("replies lost", dice.jitter(OUTAGE))
                }
                1 if !was_outage => {
                    ways.iter().for_each(|way| {
                        way.refuse();
                        way.reset();
                    });
                    ("connections refused and reset", dice.jitter(OUTAGE))
                }
                _ => {
                    let late = |dice: &mut Dice| Duration::from_micros(dice.below(micros(LATE)));
                    let (there, back) = (late(dice), late(dice));
                    ways.iter().for_each(|way| way.delay(there, back));
                    ("delays", dice.jitter(if was_outage { TTL } else { TTL / 5 }))
                }
            };
            *self.tally.entry(name).or_default() += 1;
            *sky = (now + lasts, name != "delays");
        }
    }

    pub fn end(&self, place: &Place) {
        (0..self.skies.len()).flat_map(|node| place.ways(node)).for_each(Proxy::pass);
    }

    /// For people.
    pub fn tell(&self) {
        println!("\nconditions");
        for (name, count) in &self.tally {
            println!("  {count:>5}  {name}");
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
