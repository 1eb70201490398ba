//! What Tenure's tests share: the suite of promises that every store passes ([`mod@conformance`]), the
//! independent judge of what nodes did ([`checker`]), real servers of our own ([`server`]), and a network
//! in front of them that fails as told ([`proxy`]).
//!
//! This crate knows the contract and no store. Every store's crate depends on it for its tests
//! and runs the suite with a few lines: see [`conformance!`].

pub mod checker;
pub mod conformance;
pub mod proxy;
pub mod server;
