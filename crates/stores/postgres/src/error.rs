//! What each failure means for the caller.

use tenure_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// A request failed. What the server refused was rolled back as a whole; what it did not answer may have
/// been done.
pub(crate) fn classify(error: Error) -> StoreError {
    match error.as_db_error() {
        // The server ends the connection, perhaps after it has committed: that was no answer.
        Some(ended) if matches!(ended.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) => {
            StoreError::indeterminate(ended.message().to_owned())
        }
        Some(refused) => refusal(refused),
        None if error.is_closed() => StoreError::indeterminate("the connection was closed over the request"),
        None => StoreError::indeterminate(said(&error)),
    }
}

/// There is no connection to any of these places: nothing was asked.
pub(crate) fn no_connection(error: Error, places: &str) -> StoreError {
    if let Some(refused) = error.as_db_error() {
        return refusal(refused);
    }
    let said = said(&error);
    // The driver has no other way to say it.
    if said.contains("password missing") {
        return StoreError::misconfigured(format!(
            "PostgreSQL at {places} asks for a password, and there is none; {PASSWORD}"
        ));
    }
    // A replica may be promoted at any time, so this may pass.
    if said.contains("database does not allow writes") {
        return StoreError::unavailable(format!(
            "PostgreSQL at {places} does not allow writes; if it is a replica, name the primary too: \
             postgres://user@primary,replica/database"
        ));
    }
    StoreError::unavailable(format!("cannot reach PostgreSQL at {places}: {said}"))
}

const GONE: &str = "Tenure's tables are gone or were changed; stop all nodes, restore them, and start again";
const PASSWORD: &str = "check user and password in the store URL (or in TENURE_STORE_PASSWORD, PGPASSWORD or ~/.pgpass for the `tenure` command), and pg_hba.conf on the server";

fn refusal(error: &DbError) -> StoreError {
    let message = error.message().to_owned();
    let state = error.code();
    let advice = match state {
        s if *s == SqlState::INVALID_PASSWORD || *s == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            PASSWORD
        }
        s if *s == SqlState::INVALID_CATALOG_NAME => "create it with `createdb`, or correct the store URL",
        s if *s == SqlState::INSUFFICIENT_PRIVILEGE => {
            "let a role with more rights connect once, or grant them: docs/stores/postgres.md"
        }
        s if *s == SqlState::NUMERIC_VALUE_OUT_OF_RANGE => {
            "a number in Tenure's tables is beyond what can be counted; somebody made it up: rename the election"
        }
        s if *s == SqlState::TOO_MANY_CONNECTIONS => {
            return StoreError::unavailable(format!(
                "{message}; every node needs one connection, and up to three more while it is a candidate or busy: raise max_connections, or use PgBouncer"
            ));
        }
        s if *s == SqlState::INVALID_SCHEMA_NAME => GONE,
        // By their class: a number or a time that is none, a constraint that does not hold, something
        // that is not there. Nothing that Tenure writes leads to any of them.
        s => match s.code().get(..2) {
            Some("22" | "23") => "Tenure's tables were changed by hand; see docs/stores/postgres.md",
            Some("42") => GONE,
            // Locked, dead-locked, cancelled, out of connections, shutting down, read-only, disk full, …
            _ => return StoreError::unavailable(message),
        },
    };
    StoreError::misconfigured(format!("PostgreSQL says: {message}; {advice}"))
}

/// An error with what caused it: the driver's own message is only the outermost.
fn said(error: &Error) -> String {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    message
}
