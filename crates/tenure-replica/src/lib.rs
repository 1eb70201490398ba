//! The contract of a store as a state machine, to be read beside [`tenure_store::Store`].
//!
//! It has no clock, no randomness and no I/O: the same transactions in the same order, at the same
//! [`Moment`]s, make the same state wherever they are applied. A store inside one process keeps one replica
//! under a lock; a store that replicates a log keeps one on every member, and writes it down as it is.
//!
//! The rules themselves are in `sessions.rs` (open, renew, close), `claims.rs` (claim), `resignation.rs`, `succession.rs`,
//! `petition.rs`, `deletion.rs`, `declaration.rs` and `ledger.rs` (partitions); what is kept is in `space.rs` and `history.rs`.

mod claims;
mod declaration;
mod deletion;
mod health;
mod history;
mod ledger;
mod petition;
mod reading;
mod replica;
mod resignation;
mod sessions;
mod space;
mod succession;
mod transaction;

pub use replica::{Ages, Moment, Replica};
pub use transaction::Transaction;
