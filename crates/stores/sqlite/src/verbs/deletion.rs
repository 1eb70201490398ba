//! Deletion: an election is ended, and its term lives on.

use rusqlite::params;
use serde_json::json;
use tenure_core::ElectionName;
use tenure_store::{Deletion, EventKind};

use super::Scope;
use super::contest::Contest;
use crate::error::Stop;

/// The end consumes a term number, so that whoever compares terms sees that it came after
/// everything before. A holder keeps its lease: only itself or its silence can free it.
pub(crate) fn delete(scope: &Scope<'_>, name: &ElectionName, force: bool) -> Result<Deletion, Stop> {
    let mut contest = Contest::load(scope, name)?;
    if !contest.row.stood {
        return Ok(Deletion::Absent);
    }
    if contest.holder.is_some() && !force {
        return Ok(Deletion::Led);
    }
    let ended = contest.next_term()?;
    contest.row.floor = ended;
    contest.row.ended = ended;
    contest.row.stood = false;
    contest.tell(EventKind::ElectionDeleted, None, ended, &json!({}))?;
    contest.save()?;
    contest.notify_holder()?;
    scope.execute(
        "DELETE FROM tenure_candidates WHERE namespace = ?1 AND election = ?2",
        params![scope.namespace, name.as_str()],
    )?;
    Ok(Deletion::Ended)
}
