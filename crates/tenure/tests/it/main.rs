//! The library from outside, in one binary: each links every store.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod blocking;
mod by_hand;
mod callbacks;
mod cluster;
mod common;
mod errors;
mod examples;
mod failback;
mod gate;
mod health;
mod isolation;
mod lead;
mod many;
mod one_node_per_child;
mod partitions;
mod start;
mod supervise;
mod supervise_modes;
mod telemetry;
