use std::cell::Cell;

use rusqlite::{Connection, OptionalExtension, Params, Row};
use tenure_store::Options;

use crate::moment::Moment;

/// One verb under way: its transaction, its moment, and for whom it works.
pub(crate) struct Scope<'a> {
    connection: &'a Connection,
    pub namespace: &'a str,
    /// How many events are kept per election.
    pub kept: i64,
    pub moment: Moment,
    transition: Cell<bool>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(connection: &'a Connection, options: &'a Options, moment: Moment) -> Self {
        Self {
            connection,
            namespace: options.namespace.as_str(),
            kept: i64::from(options.retention.events.max(1)),
            moment,
            transition: Cell::new(false),
        }
    }

    /// Whether something happened to an election or a node, so that others must hear of it.
    pub(crate) fn transition(&self) -> bool {
        self.transition.get()
    }

    /// Something has happened to an election or a node.
    pub(crate) fn mark_transition(&self) {
        self.transition.set(true);
    }

    /// Changes rows; how many.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(params)
    }

    /// The only row, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.connection.prepare_cached(sql)?.query_row(params, read).optional()
    }

    /// All rows.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.connection.prepare_cached(sql)?.query_map(params, read)?.collect()
    }
}
