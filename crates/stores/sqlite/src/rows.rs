//! Between rows and Tenure's words.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use rusqlite::Row;
use rusqlite::types::Type;
use tenure_core::{NameError, Pulse, SessionId, Stamp};
use tenure_store::{EventKind, Labels, StoreError};

use crate::error::Stop;
use crate::moment::Moment;

/// A number for a column. SQLite counts to 2^63 − 1, which no honest counter reaches.
pub(crate) fn whole(number: u64) -> Result<i64, Stop> {
    i64::try_from(number).map_err(|_| {
        StoreError::misconfigured(format!(
            "the number {number} is beyond what SQLite can count; somebody made it up"
        ))
        .into()
    })
}

/// A number from a column.
pub(crate) fn count(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, number))
}

/// A name from a column that may be empty.
pub(crate) fn optional_name<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>>
where
    T: TryFrom<String, Error = NameError>,
{
    row.get::<_, Option<String>>(column)?.map(|text| T::try_from(text).map_err(foreign)).transpose()
}

/// A name from a column.
pub(crate) fn name<T>(row: &Row<'_>, column: &str) -> rusqlite::Result<T>
where
    T: TryFrom<String, Error = NameError>,
{
    T::try_from(row.get::<_, String>(column)?).map_err(foreign)
}

/// What an event tells.
pub(crate) fn kind(row: &Row<'_>) -> rusqlite::Result<EventKind> {
    let kind: String = row.get("kind")?;
    EventKind::from_name(&kind).ok_or_else(|| foreign(UnknownKind(kind)))
}

/// An event of a kind that this build does not know.
#[derive(Debug, thiserror::Error)]
#[error("the history tells of `{0}`, which this build does not know")]
struct UnknownKind(String);

/// A session's number from a column that may be empty.
pub(crate) fn optional_session(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<SessionId>> {
    row.get::<_, Option<String>>(column)?.map(|hex| SessionId::from_str(&hex).map_err(foreign)).transpose()
}

/// A session's number from a column.
pub(crate) fn session(row: &Row<'_>, column: &str) -> rusqlite::Result<SessionId> {
    SessionId::from_str(&row.get::<_, String>(column)?).map_err(foreign)
}

/// The pulse of `session`, from the columns of its row.
pub(crate) fn pulse(row: &Row<'_>, session: SessionId, now: &Moment) -> rusqlite::Result<Pulse> {
    let clock: Option<String> = row.get("clock")?;
    Ok(Pulse {
        stamp: Stamp { session, sequence: count(row, "sequence")? },
        ttl: Duration::from_millis(count(row, "ttl_ms")?),
        age: now.age(row.get("renewed_boot_ns")?, clock.as_deref()),
    })
}

/// What an operator says of a node.
pub(crate) fn labels(row: &Row<'_>) -> rusqlite::Result<Labels> {
    let written: BTreeMap<String, String> =
        serde_json::from_str(&row.get::<_, String>("labels")?).map_err(foreign)?;
    Labels::of(written).map_err(foreign)
}

/// A value that Tenure did not write.
pub(crate) fn foreign(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
}
