//! One run of one seed.

use tenure_core::{Plant, Planted};

use crate::calm::Calm;
use crate::clock::Real;
use crate::config::Config;
use crate::coverage::Coverage;
use crate::invariants::{self, Violation};
use crate::proof::proves;
use crate::settling::Settling;
use crate::world::{What, World};

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// The same for the same seed.
    pub hash: u64,
    /// How long it lasted, in simulated time.
    pub simulated: Real,
    /// How often somebody was elected.
    pub elections: u64,
    /// How often somebody was given a partition.
    pub assignments: u64,
    /// Which faults met which roles.
    pub coverage: Coverage,
    /// What happened, if it was to be read.
    pub timeline: Vec<String>,
}

/// A run takes some ten thousand steps. Many more mean that somebody asks without a pause.
const MOST_STEPS: u64 = 1_000_000;

/// Runs a configuration, with a bug planted or none. A planted bug may upset much before it breaks what it breaks by
/// its nature: the run goes on until then, and only that is its violation.
#[must_use]
pub fn run(config: Config, plant: Option<Plant>, readable: bool) -> Outcome {
    let mut world = World::new(config, planted(plant), readable);
    let mut promises = invariants::all();
    let (mut calm, mut settling) = (Calm::default(), Settling::default());
    let divides = world.config.division.is_some();
    let counts = |promise: &str| plant.is_none_or(|plant| proves(plant, promise));
    let mut violation = None;
    let mut steps = 0u64;
    'run: while let Some(happened) = world.step() {
        steps += 1;
        if steps > MOST_STEPS {
            let (promise, how) = ("nobody spins", format!("{MOST_STEPS} steps, and no end"));
            violation = Some(Violation { promise, how }).filter(|_| counts(promise));
            break;
        }
        if matches!(happened, What::Calm) {
            let step = if divides { settling.advance(&mut world) } else { calm.advance(&mut world) };
            match step {
                Ok(true) => {}
                Ok(false) => break,
                Err(broken) if counts(broken.promise) => violation = Some(broken),
                Err(_) => break,
            }
        }
        let facts = std::mem::take(&mut world.facts);
        for fact in &facts {
            for promise in &mut promises {
                if let Err(how) = promise.judge(fact, &world)
                    && counts(promise.promise())
                {
                    violation.get_or_insert(Violation { promise: promise.promise(), how });
                }
            }
        }
        if let Some(broken) = &violation {
            let how = format!("VIOLATION of {}: {}", broken.promise, broken.how);
            world.trace.line(world.real, || how);
            break 'run;
        }
        world.facts = facts;
        world.facts.clear();
    }
    Outcome {
        violation,
        hash: world.trace.hash(),
        simulated: world.real,
        elections: world.elections,
        assignments: world.assignments,
        coverage: world.coverage,
        timeline: world.trace.lines(),
    }
}

/// A build without the feature `plants` simulates the real protocol only.
fn planted(plant: Option<Plant>) -> Planted {
    #[cfg(feature = "plants")]
    return Planted::new(plant);
    #[cfg(not(feature = "plants"))]
    {
        assert!(plant.is_none(), "this build has no planted bugs: build tenure-sim with `--features plants`");
        Planted::default()
    }
}
