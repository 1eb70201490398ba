//! The store on real MariaDB servers (or MySQL: docs/stores/mysql.md), in one binary.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod clocks;
mod common;
mod conformance;
mod connecting;
mod deadlocks;
mod defects;
mod given_up;
mod interrupted;
mod news;
mod rights;
mod scenarios;
mod settings;
