//! The memory store, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod ages;
mod conformance;
