//! Elections in a PostgreSQL database.
//!
//! Every verb is one call of one function in the database: one statement, one round trip, one
//! transaction. Nothing rests on a database session, so it is right behind a pool that hands connections
//! from one transaction to the next (PgBouncer in transaction mode).
//!
//! | file | what it is |
//! |---|---|
//! | `schema.sql` | tables and views for people, and the functions: the rules of the contract |
//! | `address` | the store URL: where the database is, and in which schema |
//! | `tls` | whether connections are encrypted, and whom to trust |
//! | `connect` | a connection: every one is opened there, and in the same way |
//! | `engine` | a thread with a runtime of its own, which the application cannot starve |
//! | `line` | one connection, opened again when it must be; never used after a cancelled request |
//! | `setup` | the schema: made once, also when three nodes start at once |
//! | `words` | what the functions answer, and what it means |
//! | `news` | LISTEN on a connection of its own: hints, and never truth |
//! | `examination` | what `tenure check` shows |
//! | `fence` | transactions of the application, which hold its lease |
//! | `error` | what each failure means for the caller |
//! | `store` | the contract, verb by verb |

mod address;
mod connect;
mod engine;
mod error;
mod examination;
mod fence;
mod line;
mod news;
mod setup;
mod store;
mod tls;
mod words;

pub use store::PostgresStore;
pub use tenure_store::TransactionError;
/// The driver, in the version whose transactions [`PostgresStore::transaction`] hands out.
pub use tokio_postgres;
