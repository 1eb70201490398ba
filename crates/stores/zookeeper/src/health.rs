//! What a node reports of its own health: written into its document, and told when it changes.

use std::sync::Arc;

use serde_json::json;
use tenure_store::{EventKind, HealthReport, StoreError};
use zookeeper_client::Error;

use crate::documents::{self, NodeDocument, UnhealthyDocument, now_us};
use crate::error::{Over, classify};
use crate::inner::{Inner, settle};
use crate::multi::Multi;

pub(crate) async fn report(inner: &Arc<Inner>, report: &HealthReport) -> Result<bool, StoreError> {
    let tenant = inner.expect_tenant(report.session).await?;
    let path = inner.paths().node(&tenant.node);
    let changed = settle(async || {
        let line = tenant.line();
        let (data, stat) = line.client().get_data(&path).await.map_err(|error| match error {
            Error::NoNode => StoreError::SessionLost,
            error => classify(&error, Over::Session),
        })?;
        let mut known: NodeDocument = documents::read(&path, &data)?;
        if known.session != report.session.to_string() {
            return Err(StoreError::SessionLost.into());
        }
        if report.number < known.health_report {
            return Ok(false); // overtaken
        }
        let before = known.unhealthy.take();
        let since_us = before.as_ref().map_or_else(now_us, |before| before.since_us);
        known.health_report = report.number;
        known.unhealthy = report
            .problem
            .as_ref()
            .map(|problem| UnhealthyDocument { problem: problem.to_string(), since_us });
        let mut multi = Multi::new(line.client(), Over::Session);
        multi.under(&inner.paths().session(report.session), line.number);
        multi.set(&path, &documents::write(&known), Some(stat.version));
        let node = tenant.node.as_str();
        match (&before, &report.problem) {
            (None, Some(problem)) => {
                let data = json!({"problem": problem.as_str()});
                inner.tell_of_node(&mut multi, EventKind::NodeUnhealthy, node, data);
            }
            (Some(_), None) => inner.tell_of_node(&mut multi, EventKind::NodeHealthy, node, json!({})),
            (None, None) | (Some(_), Some(_)) => {}
        }
        multi.commit().await?;
        Ok(before.is_some() != report.problem.is_some())
    })
    .await?;
    if changed {
        let _ = inner.trim_log(&tenant.client()).await; // there is always a next time
    }
    Ok(changed)
}
