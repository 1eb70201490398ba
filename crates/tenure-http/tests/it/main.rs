//! The API and the leader-only layer from outside, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod example;
mod leader_only;
mod supervised;
