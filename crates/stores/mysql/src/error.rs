//! What each failure means for the caller.

use mysql_async::{Error, ServerError};
use tenure_sql::Failure;
use tenure_store::StoreError;

/// Another transaction was in the way, and this one was rolled back as a whole.
pub(crate) const DEADLOCK: u16 = 1213;
/// There is no such savepoint (or procedure, by the same number).
pub(crate) const DOES_NOT_EXIST: u16 = 1305;
/// What a binary log refuses to users without SUPER.
pub(crate) const NO_TRIGGERS: u16 = 1419;

const GONE: &str = "Tenure's tables are gone or were changed; stop all nodes, restore them, and start again";
const RIGHTS: &str = "let a user with more rights connect once, or grant them: docs/stores/mysql.md";
const BY_HAND: &str = "Tenure's tables were changed by hand; see docs/stores/mysql.md";

/// A call failed. What the server refused was rolled back as a whole; what it did not answer may have
/// been done.
pub(crate) fn classify(error: Error) -> Failure {
    match error {
        Error::Server(refused) => {
            let (ends, unknown) = (ends(refused.code), unknown(refused.code));
            let error = if unknown { StoreError::indeterminate(refused.message) } else { refusal(&refused) };
            Failure { error, answered: !ends && !unknown }
        }
        // As a connection that was closed.
        error => Failure { error: StoreError::indeterminate(error.to_string()), answered: false },
    }
}

/// Whether a server that says so may have committed before.
const fn unknown(code: u16) -> bool {
    matches!(
        code,
        // Interrupted: by somebody, by a time limit, by the end of the connection or of the server.
        1053 | 1077 | 1079 | 1105 | 1158..=1161 | 1180 | 1184 | 1317 | 1927 | 1969 | 3024 | 3169 | 4031
    )
}

/// Whether this server, or this connection, is not the one that we want any more.
const fn ends(code: u16) -> bool {
    // Read-only, by whatever setting; the last two are of a cluster's node that has no quorum.
    matches!(code, 1036 | 1290 | 1792 | 1836 | 1874 | 1047)
}

/// The server refuses. Nothing changed.
pub(crate) fn refusal(error: &ServerError) -> StoreError {
    let message = &error.message;
    let advice = match error.code {
        1045 | 1698 | 1862 | 3118 | 4151 => {
            "check user and password in the store URL (or in TENURE_STORE_PASSWORD or MYSQL_PWD for the `tenure` \
             command), and that this user may come from this host"
        }
        1049 => "create it with CREATE DATABASE, or correct the store URL",
        1044 | 1142 | 1143 | 1227 | 1370 | 1410 => RIGHTS,
        1449 => "whoever made Tenure's procedures is no more; let a user with all rights connect once",
        1040 | 1203 | 1226 => {
            return StoreError::unavailable(format!(
                "{message}; every node needs two connections, and up to three more while it is a candidate or busy: raise max_connections"
            ));
        }
        1665 => "Tenure needs binlog_format ROW or MIXED: set it in the server's configuration",
        // A number that is none.
        1264 | 1690 => {
            "a number in Tenure's tables is beyond what can be counted; somebody made it up: rename the election"
        }
        // Something that is not there.
        1054 | 1146 | 1305 | 1356 => GONE,
        // A constraint that does not hold, a value that does not fit, a trigger that refuses, words that are no
        // JSON. Nothing that Tenure writes leads to any of them.
        1048 | 1062 | 1216 | 1217 | 1292 | 1364 | 1366 | 1406 | 1411 | 1441 | 1451 | 1452 | 1644 | 3140
        | 3141 | 3819 | 4025 | 4038 => BY_HAND,
        // Locked, dead-locked, read-only, disk full, no quorum, …
        _ => return StoreError::unavailable(message.clone()),
    };
    StoreError::misconfigured(format!("the server says: {message}; {advice}"))
}

/// There is no connection to any of these places: nothing was asked.
pub(crate) fn no_connection(said: &str, places: &str) -> StoreError {
    StoreError::unavailable(format!("cannot reach MySQL at {places}: {said}"))
}

/// A replica may be promoted at any time, so this may pass.
pub(crate) fn read_only(places: &str) -> StoreError {
    StoreError::unavailable(format!(
        "MySQL at {places} does not allow writes; if it is a replica, name the primary too: \
         mysql://user@primary,replica/database"
    ))
}
