//! The Raft store, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod conformance;
mod kit;
mod membership;
mod tls;
mod upgrade;
