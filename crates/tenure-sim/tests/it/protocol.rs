//! The real protocol survives all seeds, and a seed is all that decides a run.

use tenure_sim::config::Config;
use tenure_sim::run::run;
use tenure_sim::scene::Scene;
use tenure_sim::sweep::{Scope, sweep};

use crate::SEEDS;

#[test]
fn the_real_protocol_survives_all_seeds() {
    let whole = sweep(0, SEEDS, None, Scope::Elections, false);
    assert_eq!(whole.seeds, SEEDS);
    assert!(whole.violations.is_empty(), "{:?}", whole.violations);
    assert!(whole.elections > SEEDS, "elections were held: {}", whole.elections);
}

#[test]
fn partitions_are_divided_safely_in_all_seeds() {
    let whole = sweep(0, SEEDS / 2, None, Scope::Partitions, false);
    assert!(whole.violations.is_empty(), "{:?}", whole.violations);
    assert!(whole.assignments > SEEDS, "partitions were assigned: {}", whole.assignments);
}

#[test]
fn the_real_protocol_survives_the_worlds_in_which_bugs_are_searched_for() {
    for scene in Scene::ALL {
        for seed in 0..SEEDS / 10 {
            let config = Config::from_seed(seed).with_scene(Some(*scene));
            let broken = run(config, None, false).violation;
            assert_eq!(broken, None, "{scene:?}, seed {seed}");
        }
    }
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
fn every_kind_of_fault_meets_leaders_and_candidates() {
    let coverage = sweep(0, 500, None, Scope::Elections, false).coverage;
    for kind in tenure_sim::fault::Kind::ALL {
        assert!(coverage.total(*kind) > 0, "{} never happened", kind.name());
    }
}
