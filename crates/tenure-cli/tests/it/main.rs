//! The command from outside, in one binary: each links every store.
//!
//! What needs a server, a browser or another program that is not on every machine is behind the feature
//! `server-tests`: `cargo test` does without, `cargo xtask test` installs them and runs everything.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]
#![allow(
    clippy::duplicate_mod,
    reason = "the same tests for every store: each has a module with a `STORE` of its own"
)]

mod commands;
mod demo;
#[cfg(feature = "server-tests")]
mod docs;
#[cfg(feature = "server-tests")]
mod group;
mod node;
#[cfg(feature = "server-tests")]
mod node_mysql;
#[cfg(feature = "server-tests")]
mod node_postgres;
#[cfg(feature = "server-tests")]
mod node_raft;
#[cfg(feature = "server-tests")]
mod node_zookeeper;
#[cfg(feature = "otel")]
mod otel;
#[cfg(feature = "server-tests")]
mod page;
mod run;
#[cfg(feature = "server-tests")]
mod run_mysql;
#[cfg(feature = "server-tests")]
mod run_postgres;
#[cfg(feature = "server-tests")]
mod run_raft;
#[cfg(feature = "server-tests")]
mod run_zookeeper;
#[cfg(feature = "server-tests")]
mod sidecar;
mod terminal;
