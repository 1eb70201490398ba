//! What the health probe finds is reported to the store, for people to read. Nothing is decided by it.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::SessionId;
use tenure_store::{HealthReport, Pending, Problem, Store, StoreError};
use tokio::sync::watch;

use super::Driver;
use super::enlistment::Trouble;
use crate::event::NodeEvent;

/// What the store was asked to note, and of which session.
pub(super) struct HealthReports {
    wanted: watch::Sender<Option<HealthReport>>,
    session: Option<SessionId>,
    problem: Option<Problem>,
    number: u64,
    /// Subscribers were told that the probe fails.
    told: bool,
}

impl HealthReports {
    /// With the future that sends them.
    pub(super) fn new(
        store: Arc<dyn Store>,
        limit: Duration,
        pause: Duration,
    ) -> (Self, Pending<'static, ()>) {
        let (wanted, reports) = watch::channel(None);
        let sending = keep_reported(store, reports, limit, pause);
        (Self { wanted, session: None, problem: None, number: 0, told: false }, sending)
    }

    /// Reports what has changed. A new session is healthy without a report.
    fn update(&mut self, session: Option<SessionId>, problem: Option<&Problem>) {
        if self.session != session {
            (self.session, self.problem) = (session, None);
            self.wanted.send_replace(None);
        }
        let Some(session) = session.filter(|_| self.problem.as_ref() != problem) else { return };
        self.problem = problem.cloned();
        self.number += 1;
        let (number, problem) = (self.number, problem.cloned());
        self.wanted.send_replace(Some(HealthReport { session, number, problem }));
    }
}

impl Driver {
    /// Tells of the health of the application, if that has changed, or if there is another session.
    pub(super) fn report_health(&mut self) {
        let (Some(reports), Some(health)) = (&mut self.health_reports, &self.health) else { return };
        let problem = health.problem();
        reports.update(self.machine.session(), problem);
        let failed = std::mem::replace(&mut reports.told, problem.is_some());
        match problem.cloned() {
            Some(problem) if !failed => self.tell(NodeEvent::NodeUnhealthy { problem }),
            None if failed => self.tell(NodeEvent::NodeHealthy),
            Some(_) | None => {}
        }
    }
}

/// Sends the newest report until the store has it, or its session is over.
fn keep_reported(
    store: Arc<dyn Store>,
    mut wanted: watch::Receiver<Option<HealthReport>>,
    limit: Duration,
    pause: Duration,
) -> Pending<'static, ()> {
    Box::pin(async move {
        while wanted.changed().await.is_ok() {
            let mut trouble = Trouble::default();
            loop {
                let newest = wanted.borrow_and_update().clone();
                let Some(report) = newest else { break };
                let problem = match tokio::time::timeout(limit, store.report_health(report)).await {
                    Ok(Ok(_) | Err(StoreError::SessionLost)) => break,
                    Ok(Err(error)) => error,
                    Err(_) => StoreError::unavailable("no answer in time"),
                };
                if let Some(error) = trouble.tell(&problem) {
                    tracing::warn!(
                        target: "tenure", error,
                        "the store does not show whether this node is healthy; the node tries again to report it"
                    );
                }
                tokio::time::sleep(pause).await;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_that_lasts_is_reported_once_per_session() {
        let (wanted, mut reports) = watch::channel(None);
        let mut health = HealthReports { wanted, session: None, problem: None, number: 0, told: false };
        let (first, second) = (SessionId::from_u128(1), SessionId::from_u128(2));
        let (no_disk, no_network) = (Problem::new("no disk"), Problem::new("no network"));
        let mut after = |session: Option<SessionId>, problem: Option<&Problem>| {
            reports.mark_unchanged();
            health.update(session, problem);
            reports.has_changed().unwrap().then(|| reports.borrow().clone())
        };
        let report = |session, number, problem: Option<&Problem>| {
            Some(Some(HealthReport { session, number, problem: problem.cloned() }))
        };
        assert_eq!(after(None, Some(&no_disk)), None, "there is no session yet");
        assert_eq!(after(Some(first), Some(&no_disk)), report(first, 1, Some(&no_disk)));
        assert_eq!(after(Some(first), Some(&no_disk)), None, "that was reported");
        assert_eq!(after(Some(first), Some(&no_network)), report(first, 2, Some(&no_network)));
        assert_eq!(after(None, Some(&no_network)), Some(None), "the session is over");
        assert_eq!(after(Some(second), Some(&no_network)), report(second, 3, Some(&no_network)));
        assert_eq!(after(Some(second), None), report(second, 4, None));
        assert_eq!(after(Some(first), None), Some(None), "a new session is healthy");
    }
}
