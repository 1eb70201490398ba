//! What a database has to say for itself.

use std::future::Future;

use serde::de::DeserializeOwned;
use tenure_core::Namespace;
use tenure_store::{Finding, News, Setup, StoreError, StoreUrl};

use crate::line::Line;
use crate::news::Ears;

/// A value for a function in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text, or none.
    Text(Option<String>),
    /// A number, or none.
    Number(Option<i64>),
    /// A number of 32 bits.
    Small(i32),
    /// Yes or no.
    Flag(bool),
}

/// A call that gave no answer.
#[derive(Debug)]
pub struct Failure {
    /// What that means for the caller.
    pub error: StoreError,
    /// The server has said so itself, so its connection can be used for the next call.
    pub answered: bool,
}

/// A database that keeps elections: its tables, and functions of the same names and with the same answers
/// as those of every other.
///
/// Its futures run on the store's [`Engine`](crate::Engine).
pub trait Database: Sized + Send + Sync + 'static {
    /// An open connection. Dropping it ends whatever is under way on it.
    type Connection: Send + 'static;
    /// What its function `examine` answers.
    type Examination: DeserializeOwned + Send + 'static;

    /// What the thread is called that drives its connections.
    const THREAD: &'static str;

    /// Whether the first take-over or hand-over on a connection takes longer than those after it, unless it was
    /// rehearsed: then there is a function `rehearse`, which changes nothing.
    const REHEARSES: bool = false;

    /// The database that the URL names. Nothing is connected yet.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`]: what is wrong with the URL, or with this machine.
    fn named(url: &StoreUrl) -> Result<Self, StoreError>;

    /// Sees to it that Tenure's tables are there, and ours; also when three nodes start at once. With
    /// [`Setup::Never`] it only looks.
    fn prepare(&self, setup: Setup) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Opens a connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, StoreError>> + Send;

    /// Whether a connection that nobody uses is known to have ended.
    fn is_closed(connection: &Self::Connection) -> bool;

    /// Ends whatever the server still does for a call with this mark that was given up.
    fn cancel(
        &self,
        connection: &mut Self::Connection,
        mark: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Calls a function, which answers with one JSON object. The mark names the caller's line to the server.
    fn call(
        &self,
        connection: &mut Self::Connection,
        mark: &str,
        function: &str,
        values: &[Value],
    ) -> impl Future<Output = Result<String, Failure>> + Send;

    /// Sees to what the server still does for a call after its answer, so that the next one does not wait for it.
    fn settle(&self, _connection: &mut Self::Connection) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Whether it tells of changes.
    fn news(&self) -> News;

    /// What an operator should know of it.
    fn findings(&self, seen: Self::Examination) -> Vec<Finding>;

    /// Opens the ears, and tells them whatever happens in the namespace, until the connection ends or nobody is
    /// left to tell. Not asked of a database that has no news. A connection that can be called over while it listens
    /// is given to `line`, so that it is the only one of an idle node.
    fn hear(
        &self,
        namespace: &Namespace,
        ears: &Ears,
        line: &Line<Self>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
}
