//! Real processes on real stores, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod group;
mod processes;
mod stores;
