//! The store on real PostgreSQL servers, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod clock;
mod common;
mod conformance;
mod connecting;
mod given_up;
mod kit;
mod network;
mod pooled;
mod replication;
mod restored;
mod rights;
mod scenarios;
mod vandalism;
