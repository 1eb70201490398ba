//! What a node reports of its own health: told when it changes.

use serde_json::json;
use tenure_store::{EventKind, HealthReport, StoreError, Unhealthy};

use crate::transaction::Transaction;

impl Transaction<'_> {
    /// [`Store::report_health`](tenure_store::Store::report_health).
    ///
    /// # Errors
    /// [`StoreError::SessionLost`], and nothing changed.
    pub fn report_health(&mut self, report: HealthReport) -> Result<bool, StoreError> {
        let now = self.moment.wall;
        let session = self.live(report.session)?;
        if report.number < session.health_report {
            return Ok(false); // overtaken
        }
        session.health_report = report.number;
        let before = session.unhealthy.take();
        let since = before.as_ref().map_or(now, |before| before.since);
        session.unhealthy = report.problem.map(|problem| Unhealthy { problem, since });
        let (node, after) = (session.info.id.clone(), session.unhealthy.clone());
        match (before, after) {
            (None, Some(Unhealthy { problem, .. })) => {
                let data = json!({"problem": problem.as_str()});
                self.tell_of_node(EventKind::NodeUnhealthy, &node, &data);
                Ok(true)
            }
            (Some(_), None) => {
                self.tell_of_node(EventKind::NodeHealthy, &node, &json!({}));
                Ok(true)
            }
            (None, None) | (Some(_), Some(_)) => Ok(false),
        }
    }
}
