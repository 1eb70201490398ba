//! What Tenure's tests share: the suite of promises that every store passes ([`mod@conformance`]), the
//! independent judge of what nodes did ([`checker`]), real servers of our own ([`server`]), a network in
//! front of them that fails as told ([`proxy`]), one whose packets are truly lost ([`lan`]), nodes on them
//! ([`stage`]), waits that cannot hang ([`patience`]), bytes that nobody would send ([`fuzz`]), what becomes
//! of one that is cut off ([`cut`]) or stopped ([`freeze`](fn@freeze), [`freeze_inside_a_write`]), what SQL
//! databases have to stand ([`sql`]), the candidates of other libraries ([`others`]), and certificates
//! ([`authority`]).
//!
//! This crate knows the contract and no store. Every store's crate depends on it for its tests
//! and runs the suite with a few lines: see [`conformance!`].

pub mod authority;
pub mod checker;
pub mod conformance;
pub mod cut;
mod freeze;
pub mod fuzz;
pub mod lan;
pub mod monotonic;
pub mod others;
pub mod patience;
pub mod patient;
pub mod proxy;
pub mod server;
pub mod sql;
pub mod stage;

pub use freeze::{freeze, freeze_inside_a_write};
