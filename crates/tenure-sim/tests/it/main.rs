//! The simulation, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

// What is run there also plants bugs.
#[cfg(feature = "plants")]
mod documented;
#[cfg(feature = "plants")]
mod plants;
mod protocol;

/// Within so many seeds every planted bug must be found, and the real protocol must survive them. `cargo test`, which
/// plants none, is content with fewer.
const SEEDS: u64 = if cfg!(feature = "plants") { 3_000 } else { 2_000 };
