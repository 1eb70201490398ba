//! Many runs, on all cores.

use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::Plant;

use crate::config::Config;
use crate::coverage::Coverage;
use crate::invariants::Violation;
use crate::proof::scene;
use crate::run::run;
use crate::scene::Scene;

/// Which worlds the seeds run in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Elections; and for every fourth seed also the one with partitions.
    #[default]
    Both,
    /// Elections alone.
    Elections,
    /// Elections and partitions.
    Partitions,
}

impl Scope {
    /// Where this bug can show.
    #[must_use]
    pub fn of(plant: Plant) -> Self {
        if plant.is_about_partitions() { Self::Partitions } else { Self::Elections }
    }

    /// The runs of a seed.
    fn runs(self, seed: u64, scene: Option<Scene>) -> impl Iterator<Item = Config> {
        let elections = (self != Self::Partitions).then(|| Config::from_seed(seed));
        let divides = self == Self::Partitions || (self == Self::Both && seed.is_multiple_of(4));
        let partitions = divides.then(|| Config::with_partitions(seed));
        elections.into_iter().chain(partitions).map(move |config| config.with_scene(scene))
    }
}

/// A run that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its seed.
    pub seed: u64,
    /// Whether it was about partitions.
    pub partitions: bool,
    /// What was broken.
    pub violation: Violation,
}

/// What became of many runs.
#[derive(Debug, Default)]
pub struct Sweep {
    /// How many seeds there were.
    pub seeds: u64,
    /// Runs that broke a promise, by seed.
    pub violations: Vec<Broken>,
    /// Simulated hours.
    pub hours: f64,
    /// How often somebody was elected.
    pub elections: u64,
    /// How often somebody was given a partition.
    pub assignments: u64,
    /// Which faults met which roles.
    pub coverage: Coverage,
    /// Over the hashes of all runs, in the order of their seeds.
    pub hash: u64,
}

/// Runs `seeds` seeds from `first` on. With `stop`, no new run is begun once one has failed.
#[must_use]
pub fn sweep(first: u64, seeds: u64, plant: Option<Plant>, scope: Scope, stop: bool) -> Sweep {
    let next = AtomicU64::new(first);
    let end = AtomicU64::new(first + seeds);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<(Sweep, Hashes)> = std::thread::scope(|threads| {
        let workers: Vec<_> =
            (0..cores).map(|_| threads.spawn(|| work(&next, &end, plant, scope, stop))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    let mut whole = Sweep::default();
    let mut hashes = Vec::new();
    for (part, part_hashes) in parts {
        whole.seeds += part.seeds;
        whole.hours += part.hours;
        whole.elections += part.elections;
        whole.assignments += part.assignments;
        whole.coverage.merge(&part.coverage);
        whole.violations.extend(part.violations);
        hashes.extend(part_hashes);
    }
    whole.violations.sort_by_key(|broken| (broken.seed, broken.partitions));
    hashes.sort_unstable();
    whole.hash = hashes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, (.., next)| (hash ^ next).wrapping_mul(0x0100_0000_01b3));
    whole
}

/// By seed and world.
type Hashes = Vec<(u64, bool, u64)>;

fn work(
    next: &AtomicU64,
    end: &AtomicU64,
    plant: Option<Plant>,
    scope: Scope,
    stop: bool,
) -> (Sweep, Hashes) {
    let mut part = Sweep::default();
    let mut hashes = Vec::new();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end.load(Ordering::Relaxed) {
            return (part, hashes);
        }
        part.seeds += 1;
        for config in scope.runs(seed, plant.and_then(scene)) {
            let partitions = config.division.is_some();
            let outcome = run(config, plant, false);
            #[allow(clippy::cast_precision_loss, reason = "hours for people to read")]
            let hours = outcome.simulated as f64 / 3.6e12;
            part.hours += hours;
            part.elections += outcome.elections;
            part.assignments += outcome.assignments;
            part.coverage.merge(&outcome.coverage);
            hashes.push((seed, partitions, outcome.hash));
            if let Some(violation) = outcome.violation {
                part.violations.push(Broken { seed, partitions, violation });
                if stop {
                    end.store(0, Ordering::Relaxed);
                }
            }
        }
    }
}
