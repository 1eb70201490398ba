//! An election's row: read, changed in memory, and written back if it changed.

use rusqlite::{Row, params};
use serde_json::Value;
use tenure_core::{ElectionName, Holder, MOST_TOLD, NodeId, Petition, Record, SessionId, Term};
use tenure_store::{EventKind, StoreError};

use super::{Scope, history};
use crate::error::Stop;
use crate::moment::Moment;
use crate::rows::{count, name, optional_name, optional_session, pulse};

/// Elections found there, each with the pulse of the session that holds it.
macro_rules! select {
    ($from:literal, $which:literal) => {
        concat!(
            "SELECT e.election, e.term, e.floor, e.session, e.attempt, e.leader, e.ended, e.stood, e.events,
                    e.asked, e.asked_for, e.acquired_at, s.node, s.sequence, s.ttl_ms, s.renewed_boot_ns, s.clock
             FROM ", $from, " LEFT JOIN tenure_sessions s ON s.id = e.session AND s.state = 'live'
             WHERE ", $which
        )
    };
}

const ONE: &str = select!("tenure_elections e", "e.namespace = ?1 AND e.election = ?2");
const ALL: &str = select!("tenure_elections e", "e.namespace = ?1 AND e.events > 0 ORDER BY e.election");
/// Those in whose line a session stands, in the order in which it arrived.
pub(super) const AWAITED: &str = select!(
    "tenure_candidates c JOIN tenure_elections e ON e.namespace = c.namespace AND e.election = c.election",
    "c.session = ?1 ORDER BY c.arrival LIMIT ?2"
);

/// The columns that the verbs change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    pub term: i64,
    pub floor: i64,
    pub session: Option<SessionId>,
    pub attempt: i64,
    pub leader: Option<NodeId>,
    pub ended: i64,
    pub stood: bool,
    pub events: i64,
    pub asked: i64,
    pub asked_for: Option<NodeId>,
    pub acquired_at: Option<String>,
}

/// An election under a verb.
pub(super) struct Contest<'a> {
    scope: &'a Scope<'a>,
    pub name: &'a ElectionName,
    /// As found; `None` if nobody ever stood.
    found: Option<Columns>,
    /// The last event of the transition before this one.
    settled: i64,
    pub row: Columns,
    /// Who holds the lease; nobody if its session is over.
    pub holder: Option<Holder>,
}

impl<'a> Contest<'a> {
    pub(super) fn load(scope: &'a Scope<'a>, name: &'a ElectionName) -> Result<Self, Stop> {
        let found =
            scope.one(ONE, params![scope.namespace, name.as_str()], |row| columns(row, &scope.moment))?;
        let (found, holder) = found.map_or((None, None), |(row, holder)| (Some(row), holder));
        let row = found.clone().unwrap_or_default();
        Ok(Self { scope, name, found, settled: row.events, row, holder })
    }

    /// Reads the row again after its holder was retired in this transaction.
    pub(super) fn reload(self) -> Result<Self, Stop> {
        Ok(Self { settled: self.settled, ..Self::load(self.scope, self.name)? })
    }

    pub(super) fn record(&self) -> Record {
        record(&self.row, self.holder.clone())
    }

    /// The highest term granted or heard of.
    pub(super) fn term(&self) -> i64 {
        self.row.term.max(self.row.floor)
    }

    /// The number after that.
    pub(super) fn next_term(&self) -> Result<i64, Stop> {
        self.term().checked_add(1).ok_or_else(|| {
            StoreError::misconfigured("the election has used up all terms that SQLite can count; rename it")
                .into()
        })
    }

    /// Records what happened, under `term`.
    pub(super) fn tell(
        &mut self,
        kind: EventKind,
        node: Option<&NodeId>,
        term: i64,
        data: &Value,
    ) -> Result<(), Stop> {
        self.row.events += 1;
        history::tell(self.scope, self.name.as_str(), self.row.events, kind, node, term, data)
    }

    /// Leaves word for the holder: with its next renewal it learns that there is something to read.
    pub(super) fn notify_holder(&self) -> Result<(), Stop> {
        if let Some(holder) = &self.holder {
            self.scope.execute(
                "UPDATE tenure_sessions SET notices = notices + 1 WHERE id = ?1",
                [holder.pulse.stamp.session.to_string()],
            )?;
        }
        Ok(())
    }

    /// Writes the row if the verb changed it.
    pub(super) fn save(&self) -> Result<(), Stop> {
        if self.found.as_ref() == Some(&self.row) {
            return Ok(());
        }
        // Not an upsert: a trigger takes every INSERT of an election that exists for an attempt
        // to replace it.
        let sql = match self.found {
            None => {
                "INSERT INTO tenure_elections (namespace, election, term, floor, session, attempt, leader,
                                               ended, stood, events, acquired_at, asked, asked_for)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
            }
            Some(_) => {
                "UPDATE tenure_elections SET term = ?3, floor = ?4, session = ?5, attempt = ?6, leader = ?7,
                        ended = ?8, stood = ?9, events = ?10, acquired_at = ?11, asked = ?12, asked_for = ?13
                 WHERE namespace = ?1 AND election = ?2"
            }
        };
        let row = &self.row;
        self.scope.execute(
            sql,
            params![
                self.scope.namespace,
                self.name.as_str(),
                row.term,
                row.floor,
                row.session.map(|session| session.to_string()),
                row.attempt,
                row.leader.as_ref().map(NodeId::as_str),
                row.ended,
                row.stood,
                row.events,
                row.acquired_at,
                row.asked,
                row.asked_for.as_ref().map(NodeId::as_str),
            ],
        )?;
        if row.events > self.settled {
            history::trim(self.scope, self.name.as_str(), row.events, self.settled)?;
        }
        Ok(())
    }
}

/// All elections that were ever stood for.
pub(super) fn all(scope: &Scope<'_>) -> Result<Vec<(ElectionName, Record)>, Stop> {
    Ok(scope.all(ALL, [scope.namespace], |row| named(row, &scope.moment))?)
}

/// The elections in whose line this session stands, as far as a renewal tells of them.
pub(super) fn awaited(scope: &Scope<'_>, session: SessionId) -> Result<Vec<(ElectionName, Record)>, Stop> {
    let params = params![session.to_string(), MOST_TOLD as i64];
    Ok(scope.all(AWAITED, params, |row| named(row, &scope.moment))?)
}

fn named(row: &Row<'_>, now: &Moment) -> rusqlite::Result<(ElectionName, Record)> {
    let (found, holder) = columns(row, now)?;
    Ok((name(row, "election")?, record(&found, holder)))
}

fn record(row: &Columns, holder: Option<Holder>) -> Record {
    Record {
        term: term(row.term.max(row.floor)),
        holder,
        ended: term(row.ended),
        petition: (row.asked > 0).then(|| Petition { term: term(row.asked), to: row.asked_for.clone() }),
    }
}

fn columns(row: &Row<'_>, now: &Moment) -> rusqlite::Result<(Columns, Option<Holder>)> {
    let found = Columns {
        term: row.get("term")?,
        floor: row.get("floor")?,
        session: optional_session(row, "session")?,
        attempt: row.get("attempt")?,
        leader: optional_name(row, "leader")?,
        ended: row.get("ended")?,
        stood: row.get("stood")?,
        events: row.get("events")?,
        asked: row.get("asked")?,
        asked_for: optional_name(row, "asked_for")?,
        acquired_at: row.get("acquired_at")?,
    };
    let holder = match (found.session, optional_name(row, "node")?) {
        (Some(session), Some(node)) => {
            Some(Holder { node, term: Term::new(count(row, "term")?), pulse: pulse(row, session, now)? })
        }
        _ => None,
    };
    Ok((found, holder))
}

/// A term as others see it.
pub(super) fn term(number: i64) -> Term {
    Term::new(u64::try_from(number).unwrap_or(0))
}
