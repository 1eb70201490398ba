//! Sessions: opened, renewed, closed, superseded, retired.

use std::time::Duration;

use rusqlite::params;
use serde_json::{Value, json};
use tenure_core::{Age, ElectionName, NodeId, Opening, Pulse, Renewal, Sequence, SessionId, Stamp};
use tenure_store::{Cause, EventKind, Open, Silence, StoreError, clock};

use super::succession::pass_on_all;
use super::{Scope, contest, history};
use crate::error::Stop;
use crate::moment;
use crate::rows::{count, name, pulse, session as session_column, whole};

/// How many nodes that are no more are still shown. Node ids are often random, so they would
/// pile up.
const PAST_NODES: i64 = 1_000;

const FIND: &str = "SELECT * FROM tenure_sessions WHERE id = ?1 AND namespace = ?2 AND state = 'live'";
const RENEW: &str = "
    UPDATE tenure_sessions
    SET sequence = max(sequence, ?2), renewed_at = ?3, renewed_boot_ns = ?4, clock = ?5
    WHERE id = ?1 AND state = 'live'";

/// The statements of [`renew`].
pub(crate) const RENEWAL: [&str; 3] = [FIND, RENEW, contest::AWAITED];

/// What the verbs need to know of a live session.
pub(super) struct Live {
    pub node: NodeId,
    /// Claims with a lower attempt were overtaken by a resignation.
    pub barrier: u64,
    notices: u64,
    grants: u64,
    pulse: Pulse,
}

/// The session, if it is neither over nor unknown.
pub(super) fn find(scope: &Scope<'_>, session: SessionId) -> Result<Option<Live>, Stop> {
    let found = scope.one(FIND, params![session.to_string(), scope.namespace], |row| {
        Ok(Live {
            node: name(row, "node")?,
            barrier: count(row, "attempt")?,
            notices: count(row, "notices")?,
            grants: count(row, "grants")?,
            pulse: pulse(row, session, &scope.moment)?,
        })
    });
    Ok(found?)
}

/// The session, or word that it is lost.
pub(super) fn live(scope: &Scope<'_>, session: SessionId) -> Result<Live, Stop> {
    find(scope, session)?.ok_or(Stop::Told(StoreError::SessionLost))
}

/// How often word was left for a session; 0 if that is over.
pub(super) fn notices(scope: &Scope<'_>, session: SessionId) -> Result<u64, Stop> {
    Ok(find(scope, session)?.map_or(0, |live| live.notices))
}

pub(crate) fn open(scope: &Scope<'_>, request: &Open) -> Result<Opening, Stop> {
    let known = scope.one(
        "SELECT 1 FROM tenure_sessions WHERE id = ?1",
        [request.session.to_string()],
        |_| Ok(()),
    )?;
    if known.is_some() {
        let ttl = live(scope, request.session)?.pulse.ttl;
        keep_alive(scope, request.session, request.sequence)?;
        return Ok(Opening::Opened { ttl });
    }
    // Looked for before anything is ended: an occupied node id changes nothing.
    if let Some(occupant) = occupant(scope, &request.node.id)? {
        let stamp = occupant.stamp;
        if request.supersedes != Some(stamp.session) {
            if request.over != Some(stamp) {
                return Ok(Opening::Occupied { pulse: occupant });
            }
            end(scope, stamp.session, &request.node.id, Ending::Lapsed(occupant))?;
        }
    }
    if let Some(earlier) = request.supersedes
        && let Some(live) = find(scope, earlier)?
    {
        end(scope, earlier, &live.node, Ending::Superseded(live.pulse))?;
    }
    forget(scope, &request.node.id)?;
    register(scope, request)
}

/// The live session of a node id; the table admits only one.
fn occupant(scope: &Scope<'_>, node: &NodeId) -> Result<Option<Pulse>, Stop> {
    let found = scope.one(
        "SELECT * FROM tenure_sessions WHERE namespace = ?1 AND node = ?2 AND state = 'live'",
        params![scope.namespace, node.as_str()],
        |row| pulse(row, session_column(row, "id")?, &scope.moment),
    );
    Ok(found?)
}

fn register(scope: &Scope<'_>, request: &Open) -> Result<Opening, Stop> {
    let node = &request.node;
    // Rounded up: rivals wait for what the row says, so it must not be less than was granted.
    let ttl_ms = request.ttl.as_nanos().div_ceil(1_000_000);
    let ttl_ms = whole(u64::try_from(ttl_ms).unwrap_or(u64::MAX))?;
    let moment = &scope.moment;
    scope.execute(
        "INSERT INTO tenure_sessions (id, namespace, node, hostname, address, pid, state, sequence, ttl_ms,
                                      opened_at, renewed_at, renewed_boot_ns, clock, version, labels)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'live', ?7, ?8, ?9, ?9, ?10, ?11, ?12, ?13)",
        params![
            request.session.to_string(),
            scope.namespace,
            node.id.as_str(),
            node.hostname,
            node.address,
            node.pid,
            whole(request.sequence)?,
            ttl_ms,
            moment.wall,
            moment.boot,
            moment.clock,
            node.version,
            json!(node.labels.map()).to_string(),
        ],
    )?;
    let data = json!({
        "hostname": node.hostname, "address": node.address, "pid": node.pid, "version": node.version,
    });
    history::tell_of_node(scope, EventKind::NodeJoined, &node.id, &data)?;
    Ok(Opening::Opened { ttl: Duration::from_millis(ttl_ms.unsigned_abs()) })
}

/// Drops the ended sessions of a node that is back, and the oldest of those that never came back.
fn forget(scope: &Scope<'_>, node: &NodeId) -> Result<(), Stop> {
    let over = scope.all(
        "SELECT id FROM tenure_sessions WHERE namespace = ?1 AND node = ?2 AND state <> 'live'",
        params![scope.namespace, node.as_str()],
        |row| session_column(row, "id"),
    )?;
    for session in over {
        // Nothing hangs from an ended session, unless somebody ended it by hand.
        history::free_all(scope, session, EventKind::LeaderLost, node, &json!({"reason": "lapsed"}))?;
        scope.execute("DELETE FROM tenure_sessions WHERE id = ?1", [session.to_string()])?;
    }
    scope.execute(
        "DELETE FROM tenure_sessions WHERE rowid IN (
             SELECT s.rowid FROM tenure_sessions s WHERE s.namespace = ?1 AND s.state <> 'live'
             AND NOT EXISTS (SELECT 1 FROM tenure_elections e WHERE e.session = s.id)
             ORDER BY s.rowid DESC LIMIT -1 OFFSET ?2)",
        params![scope.namespace, PAST_NODES],
    )?;
    Ok(())
}

/// One row, however much hangs from the session; and how the elections are for which it waits.
pub(crate) fn renew(
    scope: &Scope<'_>,
    session: SessionId,
    sequence: Sequence,
) -> Result<Renewal<ElectionName>, Stop> {
    let before = live(scope, session)?;
    keep_alive(scope, session, sequence)?;
    let (previous, notices, grants) = (before.pulse.stamp.sequence, before.notices, before.grants);
    Ok(Renewal { previous, notices, grants, waits_for: contest::awaited(scope, session)? })
}

fn keep_alive(scope: &Scope<'_>, session: SessionId, sequence: Sequence) -> Result<(), Stop> {
    let moment = &scope.moment;
    let params = params![session.to_string(), whole(sequence)?, moment.wall, moment.boot, moment.clock];
    scope.execute(RENEW, params)?;
    Ok(())
}

/// Closed and unknown sessions are left as they are.
pub(crate) fn close(scope: &Scope<'_>, session: SessionId, cause: Cause) -> Result<(), Stop> {
    match find(scope, session)? {
        Some(live) => end(scope, session, &live.node, Ending::Closed(cause)),
        None => Ok(()),
    }
}

/// Ends a session if it shows exactly this sign of life; whether it did.
pub(crate) fn retire(scope: &Scope<'_>, over: Stamp) -> Result<bool, Stop> {
    match find(scope, over.session)? {
        Some(live) if live.pulse.stamp == over => {
            end(scope, over.session, &live.node, Ending::Lapsed(live.pulse))?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Forgets nodes that are no more, unless something still hangs from them; how many.
pub(crate) fn purge(scope: &Scope<'_>, older_than: Duration) -> Result<u64, Stop> {
    let then = moment::to_text(clock::wall().saturating_sub(older_than));
    let gone = scope.execute(
        "DELETE FROM tenure_sessions AS s WHERE s.namespace = ?1 AND s.state <> 'live' AND s.renewed_at < ?2
         AND NOT EXISTS (SELECT 1 FROM tenure_elections e WHERE e.session = s.id)",
        params![scope.namespace, then],
    )?;
    Ok(gone as u64)
}

/// Why a session is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It was closed.
    Closed(Cause),
    /// Its own process has opened another one; its last sign of life.
    Superseded(Pulse),
    /// It was silent for its whole life; its last sign of life.
    Lapsed(Pulse),
}

impl Ending {
    /// How it is recorded in the elections that the session led.
    fn told(self) -> (EventKind, Value) {
        let (pulse, reopened) = match self {
            Self::Closed(cause) => return (cause.event(), Value::Object(cause.data())),
            Self::Superseded(pulse) => (pulse, true),
            Self::Lapsed(pulse) => (pulse, false),
        };
        let silent = match pulse.age {
            Age::Exact(age) => Some(age),
            // Its clock was another one.
            _ => None,
        };
        let silence = Silence { silent, ttl: Some(pulse.ttl), reopened };
        (EventKind::LeaderLost, Value::Object(silence.data()))
    }
}

/// Ends a live session and everything that hangs from it.
fn end(scope: &Scope<'_>, session: SessionId, node: &NodeId, ending: Ending) -> Result<(), Stop> {
    let id = session.to_string();
    let state = if matches!(ending, Ending::Lapsed(_)) { "expired" } else { "left" };
    scope.execute("UPDATE tenure_sessions SET state = ?2 WHERE id = ?1", params![id, state])?;
    let (freed, data) = ending.told();
    scope.execute("DELETE FROM tenure_candidates WHERE session = ?1", [&id])?;
    if matches!(ending, Ending::Closed(_)) {
        pass_on_all(scope, session, node, freed, &data)?;
    }
    history::free_all(scope, session, freed, node, &data)?;
    match ending {
        Ending::Closed(_) | Ending::Superseded(_) => {
            history::tell_of_node(scope, EventKind::NodeLeft, node, &data)
        }
        Ending::Lapsed(_) => history::tell_of_node(scope, EventKind::NodeExpired, node, &json!({})),
    }
}
