//! The Raft store, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod blocked;
mod conformance;
mod kit;
mod limits;
mod membership;
mod tls;
mod upgrade;
