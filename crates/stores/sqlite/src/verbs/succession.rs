//! Succession: a lease that is given up is granted to the next candidate in the same transaction.

use rusqlite::params;
use serde_json::Value;
use tenure_core::{ElectionName, NodeId, SessionId};
use tenure_store::{Claim, EventKind};

use super::Scope;
use super::claim::grant;
use super::contest::Contest;
use crate::error::Stop;
use crate::rows::{name, session as session_column};

/// A close passes on so many leases at most, so that it does not keep others from writing for long. The rest is free.
const MOST_PASSED_ON: u32 = 250;

/// A candidate to whom a lease is passed on.
pub(super) struct Successor {
    pub session: SessionId,
    pub node: NodeId,
    pub attempt: i64,
}

/// Who is granted a lease that is given up: the named candidate if it stands, or else the first in line.
pub(super) fn successor(
    scope: &Scope<'_>,
    election: &ElectionName,
    named: Option<&NodeId>,
) -> Result<Option<Successor>, Stop> {
    first_in_line(scope, election, named, None)
}

/// Who is granted a lease that is free and claimed: the first in line whose priority is higher than the claim's.
pub(super) fn preferred(scope: &Scope<'_>, claim: &Claim) -> Result<Option<Successor>, Stop> {
    first_in_line(scope, &claim.election, None, Some(claim))
}

/// The first by priority and then by arrival. A candidate that was not renewed lately, by the clock that we share with
/// it, is probably gone, and is passed over, unless it is named.
fn first_in_line(
    scope: &Scope<'_>,
    election: &ElectionName,
    named: Option<&NodeId>,
    claim: Option<&Claim>,
) -> Result<Option<Successor>, Stop> {
    let found = scope.one(
        "SELECT c.session, s.node, c.attempt
         FROM tenure_candidates c JOIN tenure_sessions s ON s.id = c.session AND s.state = 'live'
         WHERE c.namespace = ?1 AND c.election = ?2
         AND (?6 IS NULL OR (c.priority > ?6 AND c.session <> ?7))
         AND CASE WHEN s.clock IS ?4 AND s.clock IS NOT NULL
                  THEN ?5 - s.renewed_boot_ns <= s.ttl_ms * iif(s.node IS ?3, 1000000, 500000)
                  ELSE s.node IS ?3 END
         ORDER BY s.node IS ?3 DESC, c.priority DESC, c.arrival LIMIT 1",
        params![
            scope.namespace,
            election.as_str(),
            named.map(NodeId::as_str),
            scope.moment.clock,
            scope.moment.boot,
            claim.map(|claim| claim.priority),
            claim.map(|claim| claim.session.to_string())
        ],
        |row| {
            Ok(Successor {
                session: session_column(row, "session")?,
                node: name(row, "node")?,
                attempt: row.get("attempt")?,
            })
        },
    );
    Ok(found?)
}

/// Passes on what a session that was closed has led, where somebody waits for it.
pub(super) fn pass_on_all(
    scope: &Scope<'_>,
    session: SessionId,
    node: &NodeId,
    kind: EventKind,
    data: &Value,
) -> Result<(), Stop> {
    let awaited: Vec<ElectionName> = scope.all(
        "SELECT e.election FROM tenure_elections e WHERE e.session = ?1 AND EXISTS (
             SELECT 1 FROM tenure_candidates c WHERE c.namespace = e.namespace AND c.election = e.election)
         ORDER BY e.election LIMIT ?2",
        params![session.to_string(), MOST_PASSED_ON],
        |row| name(row, "election"),
    )?;
    for election in &awaited {
        let Some(next) = successor(scope, election, None)? else { continue };
        let mut contest = Contest::load(scope, election)?;
        contest.row.session = None;
        contest.tell(kind, Some(node), contest.row.term, data)?;
        grant(scope, contest, next)?;
    }
    Ok(())
}
