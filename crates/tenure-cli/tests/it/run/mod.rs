//! `tenure run` from outside: the built binary, real processes, a SQLite file.

mod crashes;
mod ends;
mod faults;
mod guarding;
mod health;
mod locks;
mod losses;
mod ordinary;
mod partitions;
mod place;
mod service;
mod stage;
mod stops;
#[cfg(feature = "server-tests")]
mod systemd;
mod turns;
mod witness;

/// The store of these tests.
const STORE: place::Kind = place::Kind::Sqlite;
