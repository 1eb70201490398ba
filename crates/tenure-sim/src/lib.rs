//! Deterministic simulation of `tenure-core`: the real machine against model stores of every kind.
//!
//! One seed decides a run: the store's kind, the nodes and their clocks, the network, and everything
//! that goes wrong. First faults, then calm: in the first phase the promises of safety are judged at
//! every step, in the second progress is demanded. A run that breaks a promise is replayed by its
//! seed, to the same trace, and shrunk to the faults that matter.
//!
//! The oracle is proven by planted bugs ([`tenure_core::Plant`]): every one of them is found.

mod calm;
mod clock;
pub mod config;
pub mod coverage;
mod desk;
mod fact;
mod failback;
pub mod fault;
mod invariants;
mod ledger;
mod mishap;
mod node;
pub mod proof;
pub mod run;
pub mod scene;
mod settling;
pub mod shrink;
mod store;
pub mod sweep;
mod trace;
mod watch;
mod world;

pub use invariants::Violation;
