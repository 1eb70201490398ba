//! What a leader says of the whole cluster: told once.

use rusqlite::params;
use serde_json::json;
use tenure_store::{Declaration, EventKind};

use super::Scope;
use super::contest::{Contest, term};
use crate::error::Stop;

pub(crate) fn declare(scope: &Scope<'_>, declaration: &Declaration) -> Result<bool, Stop> {
    let Declaration { lease, degraded, live, minimum } = declaration;
    let mut contest = Contest::load(scope, &lease.election)?;
    let held = contest.row.session == Some(lease.session) && term(contest.row.term) == lease.term;
    let Some(node) = contest.holder.as_ref().filter(|_| held).map(|holder| holder.node.clone()) else {
        return Ok(false);
    };
    let news = scope.execute(
        "UPDATE tenure_elections SET degraded = ?3 WHERE namespace = ?1 AND election = ?2 AND degraded <> ?3",
        params![scope.namespace, lease.election.as_str(), degraded],
    )?;
    if news == 0 {
        return Ok(false);
    }
    let kind = if *degraded { EventKind::ClusterDegraded } else { EventKind::ClusterRecovered };
    let data = json!({"live": live, "minimum": minimum});
    contest.tell(kind, Some(&node), contest.row.term, &data)?;
    contest.save()?;
    Ok(true)
}
