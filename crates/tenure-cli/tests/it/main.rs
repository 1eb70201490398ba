//! The command from outside, in one binary: each links every store.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod commands;
mod demo;
mod docs;
mod group;
mod node;
mod node_mysql;
mod node_postgres;
mod node_raft;
mod node_zookeeper;
#[cfg(feature = "otel")]
mod otel;
mod page;
mod run;
mod run_mysql;
mod run_postgres;
mod run_raft;
mod run_zookeeper;
mod sidecar;
