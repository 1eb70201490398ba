//! Many runs, on all cores.

use std::sync::atomic::{AtomicU64, Ordering};

use tenure_core::Plant;

use crate::config::Config;
use crate::coverage::Coverage;
use crate::invariants::Violation;
use crate::proof::proves;
use crate::run::run;

/// What became of many runs.
#[derive(Debug, Default)]
pub struct Sweep {
    /// How many there were.
    pub seeds: u64,
    /// Seeds that broke a promise, lowest first.
    pub violations: Vec<(u64, Violation)>,
    /// Simulated hours.
    pub hours: f64,
    /// How often somebody was elected.
    pub elections: u64,
    /// Which faults met which roles.
    pub coverage: Coverage,
    /// Over the hashes of all runs, in the order of their seeds.
    pub hash: u64,
}

/// Runs `seeds` seeds from `first` on. With `stop`, no new run is begun once one has failed.
#[must_use]
pub fn sweep(first: u64, seeds: u64, plant: Option<Plant>, stop: bool) -> Sweep {
    let next = AtomicU64::new(first);
    let end = AtomicU64::new(first + seeds);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parts: Vec<(Sweep, Vec<(u64, u64)>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(|| work(&next, &end, plant, stop))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a run does not panic")).collect()
    });
    let mut whole = Sweep::default();
    let mut hashes = Vec::new();
    for (part, part_hashes) in parts {
        whole.seeds += part.seeds;
        whole.hours += part.hours;
        whole.elections += part.elections;
        whole.coverage.merge(&part.coverage);
        whole.violations.extend(part.violations);
        hashes.extend(part_hashes);
    }
    whole.violations.sort_by_key(|(seed, _)| *seed);
    hashes.sort_unstable();
    whole.hash = hashes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, (_, next)| (hash ^ next).wrapping_mul(0x0100_0000_01b3));
    whole
}

fn work(next: &AtomicU64, end: &AtomicU64, plant: Option<Plant>, stop: bool) -> (Sweep, Vec<(u64, u64)>) {
    let mut part = Sweep::default();
    let mut hashes = Vec::new();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end.load(Ordering::Relaxed) {
            return (part, hashes);
        }
        let outcome = run(Config::from_seed(seed), plant, false);
        part.seeds += 1;
        #[allow(clippy::cast_precision_loss, reason = "hours for people to read")]
        let hours = outcome.simulated as f64 / 3.6e12;
        part.hours += hours;
        part.elections += outcome.elections;
        part.coverage.merge(&outcome.coverage);
        hashes.push((seed, outcome.hash));
        // With a bug planted, only what the bug breaks by its nature counts.
        let counts = |violation: &Violation| plant.is_none_or(|plant| proves(plant, violation.promise));
        if let Some(violation) = outcome.violation.filter(counts) {
            part.violations.push((seed, violation));
            if stop {
                end.store(0, Ordering::Relaxed);
            }
        }
    }
}
