//! `cargo xtask sim`: the simulation, always optimised, because an unoptimised one simulates
//! a tenth of the hours in the same time.

use std::process::ExitCode;

use crate::cargo::Cargo;

/// Runs the simulation; its exit code is ours.
pub fn run(args: &[String]) -> ExitCode {
    simulation(args).become_the_chore()
}

/// The call that simulates with `args`, which are tenure-sim's own.
pub fn simulation(args: &[String]) -> Cargo {
    Cargo::new("run --release --quiet --package tenure-sim --features plants --").with(args)
}
