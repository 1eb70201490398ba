//! What a node reports of its own health: told when it changes.

use rusqlite::params;
use serde_json::json;
use tenure_store::{EventKind, HealthReport, Problem, StoreError};

use super::{Scope, history};
use crate::error::Stop;
use crate::rows::{count, name, whole};

pub(crate) fn report_health(scope: &Scope<'_>, report: &HealthReport) -> Result<bool, Stop> {
    let id = report.session.to_string();
    let found = scope.one(
        "SELECT node, problem IS NOT NULL AS unhealthy, health_report FROM tenure_sessions
         WHERE id = ?1 AND namespace = ?2 AND state = 'live'",
        params![id, scope.namespace],
        |row| Ok((name(row, "node")?, row.get::<_, bool>("unhealthy")?, count(row, "health_report")?)),
    )?;
    let Some((node, was_unhealthy, last)) = found else { return Err(Stop::Told(StoreError::SessionLost)) };
    if report.number < last {
        return Ok(false); // overtaken
    }
    let problem = report.problem.as_ref().map(Problem::as_str);
    scope.execute(
        "UPDATE tenure_sessions SET health_report = ?2, problem = ?3,
             unhealthy_since = CASE WHEN ?3 IS NOT NULL THEN ifnull(unhealthy_since, ?4) END
         WHERE id = ?1",
        params![id, whole(report.number)?, problem, scope.moment.wall],
    )?;
    match problem {
        Some(problem) if !was_unhealthy => {
            history::tell_of_node(scope, EventKind::NodeUnhealthy, &node, &json!({"problem": problem}))?;
        }
        None if was_unhealthy => {
            history::tell_of_node(scope, EventKind::NodeHealthy, &node, &json!({}))?;
        }
        Some(_) | None => return Ok(false),
    }
    Ok(true)
}
