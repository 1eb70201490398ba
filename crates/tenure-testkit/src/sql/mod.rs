//! What becomes of nodes on an SQL database when the server, the way to it, or a person does them harm; and of
//! what the application writes there. The same for every such database: one scenario each, and
//! [`sql_suite!`](crate::sql_suite!) makes a test of every one.

// Scenarios are test code that lives in a library: a broken promise is a panic.
#![allow(clippy::missing_panics_doc, reason = "every scenario panics when its promise is broken")]
#![allow(missing_docs, reason = "the scenarios read as sentences")]
#![allow(clippy::unwrap_used, reason = "a scenario that unwraps has failed")]

use std::future::Future;
use std::sync::Arc;

use tenure::{Leadership, TransactionError};
use tenure_store::{Store, StoreError, StoreUrl};

pub mod blocked;
pub mod disk;
pub mod encryption;
pub mod failover;
pub mod faults;
pub mod fencing;
pub mod idle;
mod list;
pub mod people;
pub mod stage;
pub mod vandalism;

/// A database server of our own, and a person with a client.
pub trait SqlServer: Sized + Send + Sync + 'static {
    /// What Tenure's tables begin with: `tenure.` or `tenure_`. In what a person asks, `{t}` stands for it.
    const TABLES: &'static str;
    /// What says that the server has no room for another connection, and the setting that makes room.
    const FULL: [&'static str; 2];

    /// How many connections a node has that has nothing to do.
    const CONNECTIONS: u64;
    /// What says that there is no room on the server's disk.
    const NO_ROOM: &'static str;
    /// How many of Tenure's tables, or whatever they are in, have been made.
    const MADE: &'static str;
    /// What is refused to people there beside what is refused everywhere, and in which words.
    const REFUSED: &'static [(&'static str, &'static str)];

    /// One with an empty database. Nothing is synced to disk.
    fn start() -> Self;

    /// One that keeps what it has confirmed when it is killed.
    fn start_durable() -> Self;

    /// One with room for no more than ten connections.
    fn start_small() -> Self;

    /// One that writes down what it is asked.
    fn start_talkative() -> Self;

    /// One that others can follow.
    fn start_primary() -> Self;

    /// One that keeps everything on a small disk of its own.
    fn start_on_a_small_disk() -> Self;

    /// The same, with a log that finds no room when that disk is full.
    fn start_logging_on_a_small_disk() -> Self {
        Self::start_on_a_small_disk()
    }

    /// One that encrypts connections, with this certificate and its key (PEM).
    fn start_encrypted(certificate: &str, key: &str) -> Self;

    /// The store URL of a user who is let in only by an encrypted connection.
    fn url_that_must_encrypt(&self) -> impl Future<Output = String> + Send;

    /// The port that it listens on.
    fn port(&self) -> u16;

    /// The store URL by way of this port.
    fn url_by(&self, port: u16) -> String;

    /// The store URL.
    fn url(&self) -> String {
        self.url_by(self.port())
    }

    /// The store URL that names this server first, and then that one.
    fn url_with(&self, other: &Self) -> String {
        let host = |server: &Self| format!("127.0.0.1:{}", server.port());
        self.url().replace(&host(self), &format!("{},{}", host(self), host(other)))
    }

    /// Ends the server, and waits until it has.
    fn stop(&mut self);

    /// Kills the server, as a machine that stops does.
    fn kill(&mut self);

    /// Starts it on its data, on the same port as before.
    fn launch(&mut self);

    /// A server that follows this one, and accepts no writes of its own.
    fn replica(&self) -> impl Future<Output = Self> + Send;

    /// Waits until this replica has all that its primary has.
    fn catch_up(&self, primary: &Self) -> impl Future<Output = ()> + Send;

    /// Has this replica follow nobody any more, and accept writes.
    fn promote(&self) -> impl Future<Output = ()> + Send;

    /// Leaves no room on the disk.
    fn fill_the_disk(&self);

    /// On a full disk: writes until the server's own log finds no room.
    fn exhaust_the_log(&self) -> impl Future<Output = ()> + Send;

    /// Makes room on the disk, and starts the server anew if it does not go on by itself.
    fn free_the_disk(&mut self) -> impl Future<Output = ()> + Send;

    /// Which functions it was asked to call so far, by their names.
    fn called(&self) -> Vec<String>;

    /// The store of that URL.
    fn connect(url: StoreUrl) -> impl Future<Output = Result<Arc<dyn Store>, StoreError>> + Send;

    /// What a person is told: the first column of the first line; or why not.
    fn ask(&self, sql: &str) -> impl Future<Output = Result<String, String>> + Send;

    /// How many connections of Tenure's there are.
    fn connections(&self) -> impl Future<Output = u64> + Send;

    /// Ends every connection of Tenure's; how many?
    fn end_connections(&self) -> impl Future<Output = u64> + Send;

    /// Locks all sessions, until what it gives is dropped.
    fn lock_sessions(&self) -> impl Future<Output = Box<dyn Send>> + Send;

    /// Locks all rows of that table of Tenure's, until what it gives is dropped. Who only reads them does not wait.
    fn lock_rows(&self, table: &str) -> impl Future<Output = Box<dyn Send>> + Send;

    /// Locks that table of Tenure's as a whole, until what it gives is dropped. Who only reads it waits, too.
    fn lock_table(&self, table: &str) -> impl Future<Output = Box<dyn Send>> + Send;

    /// The statements of Tenure's that wait for a lock.
    fn waiting(&self) -> impl Future<Output = Vec<String>> + Send;

    /// Ends the connection of whoever waits for a lock, if somebody does.
    fn end_whoever_waits(&self) -> impl Future<Output = bool> + Send;

    /// Has the server accept no writes, or accept them again.
    fn set_read_only(&self, only: bool) -> impl Future<Output = ()> + Send;

    /// Has nobody hear of anything, until what it gives is dropped.
    fn deafen(&self) -> impl Future<Output = Box<dyn Send>> + Send;

    /// A fenced transaction of the application: this statement, and then that.
    fn fenced(
        leadership: &Leadership,
        sql: &str,
        then: impl Future<Output = Result<(), String>> + Send,
    ) -> impl Future<Output = Result<(), TransactionError<String>>> + Send;

    /// The same on a store, for whoever says that it still leads.
    fn fenced_on(
        store: &Arc<dyn Store>,
        lease: tenure_store::Lease,
        sql: &str,
    ) -> impl Future<Output = Result<(), tenure_store::TransactionError<String>>> + Send;
}
