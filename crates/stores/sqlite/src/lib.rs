//! Elections in a SQLite file, on one machine.
//!
//! Every verb that writes runs in a `BEGIN IMMEDIATE` transaction in WAL mode with
//! `synchronous=FULL`: when an answer is out, it is on the disk. Verbs that wait share one. All processes read the same boot
//! clock, so the age of a lease is exact, and a successor takes over at the instant that the old
//! lease has lapsed, not a poll later.
//!
//! The file may hold the application's own tables too: [`SqliteStore::transaction`] writes to
//! them only while a lease is held.
//!
//! | file | idea |
//! |---|---|
//! | `store` | the contract, verb by verb, handed to a thread |
//! | `writer` | the thread that writes: verbs that wait share a commit, renewals go first |
//! | `worker` | threads that read, and that of fenced transactions |
//! | `database` | the file: opened, noticed when it is replaced, read and written in transactions |
//! | `place` | whether a path is a place where SQLite's locks hold |
//! | `schema` | the tables, and whose file this is |
//! | `verbs` | what each verb does inside its transaction |
//! | `rows`, `moment` | what a row says, and when it was written |
//! | `fence` | transactions of the application, checked against its lease |
//! | `news` | hints to and from other processes |
//! | `lock` | who holds a lock of the file |
//! | `error` | what each SQLite error means for the caller |

mod database;
mod error;
mod fence;
mod lock;
mod moment;
mod news;
mod place;
mod rows;
mod schema;
mod store;
mod verbs;
mod worker;
mod writer;

pub use lock::is_held_by_stopped;
/// The driver, in the version whose transactions [`SqliteStore::transaction`] hands out.
pub use rusqlite;
pub use store::SqliteStore;
pub use tenure_store::TransactionError;
