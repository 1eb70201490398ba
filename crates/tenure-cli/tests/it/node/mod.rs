//! `tenure node` from outside: the built binary, real processes, a SQLite file.

mod client;
mod description;
mod document;
mod encryption;
mod health;
mod membership;
#[cfg(feature = "server-tests")]
mod metrics;
mod orders;
#[path = "../run/place.rs"]
mod place;
#[cfg(feature = "server-tests")]
mod python;
mod rows;
mod run;
mod secrets;
mod stage;
mod strangers;
mod streams;
mod top;
mod usage;
mod work;

/// The store of these tests.
const STORE: place::Kind = place::Kind::Sqlite;
