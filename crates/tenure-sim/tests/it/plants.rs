//! The oracle is proven: every planted bug is found, and the real protocol survives the same seeds.

use tenure_core::Plant;
use tenure_sim::config::Config;
use tenure_sim::run::run;
use tenure_sim::sweep::{Scope, sweep};

/// Within so many seeds every planted bug must be found.
const SEEDS: u64 = 10_000;

#[test]
fn there_are_at_least_thirty_planted_bugs() {
    assert!(Plant::ALL.len() >= 30, "{}", Plant::ALL.len());
}

#[test]
fn the_real_protocol_survives_all_seeds() {
    let whole = sweep(0, SEEDS, None, Scope::Elections, false);
    assert_eq!(whole.seeds, SEEDS);
    assert!(whole.violations.is_empty(), "{:?}", whole.violations);
    assert!(whole.elections > SEEDS, "elections were held: {}", whole.elections);
}

#[test]
fn every_planted_bug_is_found() {
    let missed = missed(|plant| !plant.is_about_partitions());
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
}

#[test]
fn every_planted_bug_in_how_partitions_are_divided_is_found() {
    assert!(Plant::ALL.iter().filter(|plant| plant.is_about_partitions()).count() >= 8);
    let missed = missed(Plant::is_about_partitions);
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
}

#[test]
fn partitions_are_divided_safely_in_all_seeds() {
    let whole = sweep(0, SEEDS / 2, None, Scope::Partitions, false);
    assert!(whole.violations.is_empty(), "{:?}", whole.violations);
    assert!(whole.assignments > SEEDS, "partitions were assigned: {}", whole.assignments);
}

fn missed(wanted: impl Fn(Plant) -> bool) -> Vec<&'static str> {
    let plants = Plant::ALL.iter().copied().filter(|plant| wanted(*plant));
    let missed =
        plants.filter(|plant| sweep(0, SEEDS, Some(*plant), Scope::of(*plant), true).violations.is_empty());
    missed.map(Plant::name).collect()
}

#[test]
fn a_seed_replays_to_the_same_trace() {
    for seed in [1, 77, 4242] {
        let once = run(Config::from_seed(seed), None, false);
        let again = run(Config::from_seed(seed), None, true);
        assert_eq!(once.hash, again.hash, "keeping a timeline changes nothing");
        assert!(!again.timeline.is_empty());
    }
    let other = run(Config::from_seed(2), None, false);
    assert_ne!(other.hash, run(Config::from_seed(1), None, false).hash);
}

#[test]
fn a_failing_run_is_shrunk_to_fewer_faults_that_still_fail() {
    let plant = Some(Plant::DeadlineFromReply);
    let broken = sweep(0, SEEDS, plant, Scope::Elections, true).violations.remove(0);
    let config = Config::from_seed(broken.seed);
    let small = tenure_sim::shrink::shrink(&config, plant);
    assert!(small.faults.len() <= config.faults.len());
    assert!(run(small, plant, false).violation.is_some());
}

#[test]
fn every_kind_of_fault_meets_leaders_and_candidates() {
    let coverage = sweep(0, 2_000, None, Scope::Elections, false).coverage;
    for kind in tenure_sim::fault::Kind::ALL {
        assert!(coverage.total(*kind) > 0, "{} never happened", kind.name());
    }
}
