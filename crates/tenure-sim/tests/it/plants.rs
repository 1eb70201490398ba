//! The oracle is proven: every planted bug is found.

use tenure_core::Plant;
use tenure_sim::config::Config;
use tenure_sim::run::run;
use tenure_sim::sweep::{Scope, sweep};

use crate::SEEDS;

#[test]
fn there_are_at_least_thirty_planted_bugs() {
    assert!(Plant::ALL.len() >= 30, "{}", Plant::ALL.len());
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

fn missed(wanted: impl Fn(Plant) -> bool) -> Vec<&'static str> {
    let plants = Plant::ALL.iter().copied().filter(|plant| wanted(*plant));
    let missed =
        plants.filter(|plant| sweep(0, SEEDS, Some(*plant), Scope::of(*plant), true).violations.is_empty());
    missed.map(Plant::name).collect()
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
