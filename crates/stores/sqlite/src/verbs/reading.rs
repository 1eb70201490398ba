//! Reading: what the store has, on one snapshot.

use rusqlite::{Row, params};
use tenure_core::{ElectionName, Record};
use tenure_store::{Candidate, NodeInfo, NodeRecord, NodeState, Problem, Unhealthy};

use super::Scope;
use super::contest::{self, Contest};
use crate::error::Stop;
use crate::moment;
use crate::rows::{labels, name, pulse, session};

pub(crate) fn read(scope: &Scope<'_>, election: &ElectionName) -> Result<Record, Stop> {
    Ok(Contest::load(scope, election)?.record())
}

pub(crate) fn elections(scope: &Scope<'_>) -> Result<Vec<(ElectionName, Record)>, Stop> {
    contest::all(scope)
}

/// Higher priority first; among equals, whoever has stood longest.
///
/// Where no node of the cluster watches, nobody retires a candidate that holds nothing. So one that has been silent for its whole life, by
/// the clock that we share with it, is passed over: it is dead, though its session is still called live.
pub(crate) fn candidates(scope: &Scope<'_>, election: &ElectionName) -> Result<Vec<Candidate>, Stop> {
    let found = scope.all(
        "SELECT s.node, c.priority
         FROM tenure_candidates c JOIN tenure_sessions s ON s.id = c.session AND s.state = 'live'
         WHERE c.namespace = ?1 AND c.election = ?2
         AND NOT (s.clock IS NOT NULL AND s.clock IS ?3 AND ?4 - s.renewed_boot_ns > s.ttl_ms * 1000000)
         ORDER BY c.priority DESC, c.arrival",
        params![scope.namespace, election.as_str(), scope.moment.clock, scope.moment.boot],
        |row| Ok(Candidate { node: name(row, "node")?, priority: row.get("priority")? }),
    );
    Ok(found?)
}

pub(crate) fn nodes(scope: &Scope<'_>) -> Result<Vec<NodeRecord>, Stop> {
    let sql = "SELECT * FROM tenure_sessions WHERE namespace = ?1 ORDER BY node";
    Ok(scope.all(sql, [scope.namespace], |row| node(row, scope))?)
}

fn node(row: &Row<'_>, scope: &Scope<'_>) -> rusqlite::Result<NodeRecord> {
    let state: String = row.get("state")?;
    Ok(NodeRecord {
        info: NodeInfo {
            id: name(row, "node")?,
            hostname: row.get("hostname")?,
            address: row.get("address")?,
            pid: row.get("pid")?,
            version: row.get("version")?,
            labels: labels(row)?,
        },
        // The table admits no fourth state.
        state: match state.as_str() {
            "live" => NodeState::Live,
            "left" => NodeState::Left,
            _ => NodeState::Expired,
        },
        pulse: pulse(row, session(row, "id")?, &scope.moment)?,
        opened_at: moment::from_text(&row.get::<_, String>("opened_at")?),
        renewed_at: moment::from_text(&row.get::<_, String>("renewed_at")?),
        unhealthy: unhealthy(row)?,
    })
}

fn unhealthy(row: &Row<'_>) -> rusqlite::Result<Option<Unhealthy>> {
    let Some(problem) = row.get::<_, Option<String>>("problem")? else { return Ok(None) };
    let since = row.get::<_, Option<String>>("unhealthy_since")?.unwrap_or_default();
    Ok(Some(Unhealthy { problem: Problem::new(&problem), since: moment::from_text(&since) }))
}
