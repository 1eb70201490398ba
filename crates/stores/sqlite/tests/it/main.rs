//! The SQLite store, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod candidates;
mod common;
mod conformance;
mod connecting;
mod cost;
mod examination;
mod faults;
mod fencing;
mod locks;
mod people;
mod telling;
