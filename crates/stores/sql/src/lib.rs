//! What elections in SQL databases have in common, whatever the database.
//!
//! The rules of the contract are functions in the database: every verb is one call of one of them, in one
//! transaction, and it answers with JSON. So a store is its schema, and what [`Database`] asks for: how a
//! connection is opened, how a function is called, what a failure means. All else is here, once.
//!
//! | file | what it is |
//! |---|---|
//! | `database` | what a database has to say for itself |
//! | `store` | the contract, verb by verb: which function, with which values, and what its answer means |
//! | `calls` | how a function is called, and over which connection |
//! | `ledger` | the same for partitions |
//! | `words` | what the functions answer |
//! | `news` | hints from the server, as long as somebody listens |
//! | `room` | for how many nodes a server has connections |
//! | `line` | one connection, opened again when it must be; never used after a cancelled request |
//! | `engine` | a thread with a runtime of its own, which the application cannot starve |
//! | `encryption` | whether connections are encrypted, and whom to trust |
//! | `fence` | transactions of the application, which hold its lease |

mod calls;
mod database;
mod encryption;
mod engine;
mod fence;
mod ledger;
mod line;
mod news;
mod room;
mod store;
mod words;

pub use database::{Database, Failure, Value};
pub use encryption::{Encryption, Trusted, is_local};
pub use engine::Engine;
pub use fence::{Fenced, Hold, enter, leave};
pub use line::Line;
pub use news::{Ears, hint};
pub use room::Room;
pub use store::SqlStore;
