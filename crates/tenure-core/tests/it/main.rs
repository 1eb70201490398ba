//! The core from outside, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod candidate;
mod handoff;
mod leader;
mod observer;
mod plan;
mod plan_optimum;
mod planning;
mod stage;
mod supervision;
mod told;
mod turns;
