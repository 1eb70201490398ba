//! The command from outside: what it prints, where, and the code that it exits with.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]
#![allow(missing_docs, reason = "the tests read as sentences")]

mod checking;
mod connecting;
mod encryption;
mod handing_over;
mod partitions;
mod passwords;
mod reading;
mod settings;
mod stage;
mod story;
mod streams;
mod usage;
