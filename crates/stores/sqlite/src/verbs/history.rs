//! The history: written with what it tells, trimmed as it grows.

use rusqlite::{Row, params};
use serde_json::Value;
use tenure_core::{NodeId, SessionId, Term};
use tenure_store::{EventKind, EventQuery, EventRecord, Limit};

use super::Scope;
use crate::error::Stop;
use crate::moment;
use crate::rows::{count, kind, optional_name};

const INSERT: &str = "
    INSERT INTO tenure_events (namespace, election, sequence, time, kind, node, term, data)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// One line about an election. The caller keeps the sequence in the election's row.
pub(super) fn tell(
    scope: &Scope<'_>,
    election: &str,
    sequence: i64,
    kind: EventKind,
    node: Option<&NodeId>,
    term: i64,
    data: &Value,
) -> Result<(), Stop> {
    let node = node.map(NodeId::as_str);
    let wall = &scope.moment.wall;
    scope.execute(
        INSERT,
        params![scope.namespace, election, sequence, wall, kind.name(), node, term, data.to_string()],
    )?;
    scope.mark_transition();
    Ok(())
}

/// Drops what is beyond retention, but nothing after `settled`: the transition under way is kept
/// whole.
pub(super) fn trim(scope: &Scope<'_>, election: &str, last: i64, settled: i64) -> Result<(), Stop> {
    let beyond = settled.min(last - scope.kept);
    if beyond > 0 {
        scope.execute(
            "DELETE FROM tenure_events WHERE namespace = ?1 AND election = ?2 AND sequence <= ?3",
            params![scope.namespace, election, beyond],
        )?;
    }
    Ok(())
}

/// One line about a node, and no more such lines than are to be kept.
pub(super) fn tell_of_node(
    scope: &Scope<'_>,
    kind: EventKind,
    node: &NodeId,
    data: &Value,
) -> Result<(), Stop> {
    let none: Option<&str> = None;
    let wall = &scope.moment.wall;
    scope.execute(
        INSERT,
        params![scope.namespace, none, 0, wall, kind.name(), node.as_str(), 0, data.to_string()],
    )?;
    scope.execute(
        "DELETE FROM tenure_events WHERE namespace = ?1 AND election IS NULL AND id <= (
             SELECT id FROM tenure_events WHERE namespace = ?1 AND election IS NULL
             ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        params![scope.namespace, scope.kept],
    )?;
    scope.mark_transition();
    Ok(())
}

/// One line in every election that a session leads, whose leases are then free: three statements
/// however many there are.
pub(super) fn free_all(
    scope: &Scope<'_>,
    session: SessionId,
    kind: EventKind,
    node: &NodeId,
    data: &Value,
) -> Result<(), Stop> {
    let session = session.to_string();
    let freed = scope.execute(
        "INSERT INTO tenure_events (namespace, election, sequence, time, kind, node, term, data)
         SELECT namespace, election, events + 1, ?2, ?3, ?4, term, ?5
         FROM tenure_elections WHERE session = ?1 ORDER BY election",
        params![session, scope.moment.wall, kind.name(), node.as_str(), data.to_string()],
    )?;
    if freed == 0 {
        return Ok(());
    }
    scope.execute(
        "DELETE FROM tenure_events WHERE id IN (
             SELECT v.id FROM tenure_elections e
             JOIN tenure_events v ON v.namespace = e.namespace AND v.election = e.election
                                 AND v.sequence <= e.events + 1 - ?2
             WHERE e.session = ?1)",
        params![session, scope.kept],
    )?;
    scope.execute(
        "UPDATE tenure_elections SET session = NULL, events = events + 1 WHERE session = ?1",
        [&session],
    )?;
    scope.mark_transition();
    Ok(())
}

/// The events of a namespace. The plus has them be found by their id; an index of the namespace would go through the
/// whole history.
macro_rules! select {
    ($order:literal) => {
        concat!(
            "SELECT * FROM tenure_events WHERE id > ?2 AND +namespace = ?1 ORDER BY id ",
            $order,
            " LIMIT ?3"
        )
    };
}

pub(crate) const OLDEST_FIRST: &str = select!("ASC");
pub(crate) const NEWEST_FIRST: &str = select!("DESC");

/// The history, oldest first.
pub(crate) fn events(scope: &Scope<'_>, query: &EventQuery) -> Result<Vec<EventRecord>, Stop> {
    let after = i64::try_from(query.after).unwrap_or(i64::MAX);
    let limit = query.limit.map_or(-1, |limit| i64::from(limit.count()));
    let from_the_end = matches!(query.limit, Some(Limit::Newest(_)));
    let found = match &query.election {
        Some(election) => {
            let order = if from_the_end { "DESC" } else { "ASC" };
            scope.all(
                &format!(
                    "SELECT * FROM tenure_events WHERE namespace = ?1 AND election = ?4 AND id > ?2
                     ORDER BY sequence {order} LIMIT ?3"
                ),
                params![scope.namespace, after, limit, election.as_str()],
                event,
            )
        }
        None => {
            let sql = if from_the_end { NEWEST_FIRST } else { OLDEST_FIRST };
            scope.all(sql, params![scope.namespace, after, limit], event)
        }
    };
    let mut events = found?;
    if from_the_end {
        events.reverse();
    }
    Ok(events)
}

fn event(row: &Row<'_>) -> rusqlite::Result<EventRecord> {
    Ok(EventRecord {
        id: count(row, "id")?,
        sequence: count(row, "sequence")?,
        time: moment::from_text(&row.get::<_, String>("time")?),
        kind: kind(row)?,
        election: optional_name(row, "election")?,
        node: optional_name(row, "node")?,
        term: Term::new(count(row, "term")?),
        data: row.get("data")?,
    })
}
