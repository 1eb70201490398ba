//! The oracle is proven: every planted bug is found.

use tenure_core::Plant;
use tenure_sim::config::Config;
use tenure_sim::fault::{Fault, Kind};
use tenure_sim::proof::{proves, scene};
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

#[test]
fn a_bug_whose_scene_is_set_is_found_again_and_again() {
    let staged = Plant::ALL.iter().filter(|plant| scene(**plant).is_some());
    let found = staged
        .map(|plant| (plant.name(), sweep(0, 200, Some(*plant), Scope::of(*plant), false).violations.len()));
    let rare: Vec<_> = found.filter(|(_, found)| *found < 10).collect();
    assert!(rare.is_empty(), "found in so few of 200 seeds: {rare:?}");
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
    let config = Config::for_plant(broken.seed, plant);
    let small = tenure_sim::shrink::shrink(&config, plant);
    assert!(small.faults.len() <= config.faults.len());
    assert!(run(small, plant, false).violation.is_some());
}

/// What the judges find that depend on terms or sessions which a store that went back has forgotten.
const FOUND_AFTERWARDS: [Plant; 8] = [
    Plant::StoreKeepsTerm,
    Plant::StoreResignResetsTerm,
    Plant::PriorityIgnored,
    Plant::TakeoverDelaySkipped,
    Plant::EndUnnoticed,
    Plant::RestartInheritsSession,
    Plant::UncertainClaimForgotten,
    Plant::PartitionOldTermAccepted,
];

#[test]
fn judges_are_strict_again_after_the_store_went_back() {
    let missed =
        FOUND_AFTERWARDS.iter().filter(|plant| !(0..SEEDS).any(|seed| is_found_afterwards(**plant, seed)));
    let missed: Vec<_> = missed.map(|plant| plant.name()).collect();
    assert!(missed.is_empty(), "not found after a roll-back within {SEEDS} seeds: {missed:?}");
}

/// Whether the bug is found after the store has forgotten a ttl, early and once.
fn is_found_afterwards(plant: Plant, seed: u64) -> bool {
    let mut config = Config::for_plant(seed, Some(plant));
    config.faults.retain(|fault| !matches!(fault.kind, Kind::Rollback | Kind::SilentRollback | Kind::Forget));
    let (at, lasts) = (config.calm_at / 8, config.ttl);
    config.faults.push(Fault { at, lasts, node: 0, election: 0, kind: Kind::Forget });
    let outcome = run(config, Some(plant), false);
    let found = outcome.violation.is_some_and(|violation| proves(plant, violation.promise));
    found && outcome.simulated > at + lasts
}
