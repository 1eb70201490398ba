//! Real servers, started privately: on a free loopback port, in a temporary directory, gone when dropped.
//! A server that is already there is never touched.
//!
//! A server that is not installed fails the test loudly, and says what to install.

mod postgres;
mod process;

pub use postgres::Postgres;
