//! The promises of a store, each as a check that any store can run: one file per promise.
//!
//! [`conformance!`](crate::conformance!) makes a test of every check. A check gets a [`Fixture`]
//! of its own, so it meets a store where nothing has happened yet. Promises that only some kinds
//! of store give are gated by what the store says of itself ([`Capabilities`](tenure_core::Capabilities)).
//!
//! Nothing here sleeps: a check that could wait forever is ended by the time limit of [`run`].

// The suite is test code that lives in a library: a broken promise is a panic.
#![allow(clippy::missing_panics_doc, reason = "every check panics when its promise is broken")]

pub mod ages;
mod cast;
pub mod closing;
pub mod contention;
pub mod declaration;
pub mod deletion;
pub mod division;
pub mod dropped_futures;
mod fixture;
pub mod grants;
pub mod health;
pub mod history;
pub mod identity;
pub mod ledger;
mod list;
pub mod names;
pub mod namespaces;
pub mod news;
pub mod opening;
pub mod petition;
pub mod priority;
pub mod registry;
pub mod renewal;
pub mod resignation;
pub mod retirement;
pub mod succession;
pub mod takeover;
pub mod terms;

pub use fixture::{Check, Fixture, run, run_together};
