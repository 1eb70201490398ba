//! One connection, opened again when it must be.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tenure_store::StoreError;
use tokio::sync::Mutex;
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};

use crate::address::Address;
use crate::connect::connect;
use crate::error::classify;

/// A value for a function in the database, with its type: so nothing needs to be prepared, and one
/// round trip is enough on any connection.
pub(crate) type Value = (Box<dyn ToSql + Sync + Send>, Type);

/// A connection for one request at a time.
///
/// It is taken out while a request is under way, and put back only when that was answered: a request
/// that was given up takes its connection with it, since the next answer on it would not be ours.
pub(crate) struct Line {
    address: Arc<Address>,
    client: Mutex<Option<Client>>,
}

impl Line {
    pub(crate) fn new(address: Arc<Address>) -> Self {
        Self { address, client: Mutex::new(None) }
    }

    /// Has the next request open a fresh connection.
    pub(crate) async fn reset(&self) {
        *self.client.lock().await = None;
    }

    /// Calls a function that answers with one JSON object.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        sql: &str,
        values: &[Value],
    ) -> Result<T, StoreError> {
        let mut slot = self.client.lock().await;
        let client = match slot.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => connect(&self.address, None).await?,
        };
        let values: Vec<(&(dyn ToSql + Sync), Type)> =
            values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect();
        let answer = client.query_typed(sql, &values).await;
        let answered = match &answer {
            Ok(_) => true,
            // A server that has become read-only is not the one that we want any more.
            Err(error) => error.as_db_error().is_some_and(|refused| {
                *refused.code() != tokio_postgres::error::SqlState::READ_ONLY_SQL_TRANSACTION
            }),
        };
        if answered {
            *slot = Some(client);
        }
        let rows = answer.map_err(classify)?;
        let text: &str = rows.first().and_then(|row| row.try_get(0).ok()).ok_or_else(|| {
            StoreError::misconfigured("Tenure's tables are gone: the database answers with nothing")
        })?;
        serde_json::from_str(text).map_err(|error| {
            StoreError::misconfigured(format!("the database answers in other words than ours: {error}"))
        })
    }
}
