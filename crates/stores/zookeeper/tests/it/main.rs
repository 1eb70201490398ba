//! The store on real ZooKeeper servers, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod blocked;
mod bounds;
mod common;
mod conformance;
mod encryption;
mod faults;
mod given;
mod go;
mod idle;
mod line;
mod others;
mod races;
mod reads;
mod rights;
mod seed_defects;
mod seed_library;
