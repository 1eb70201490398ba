//! What tests of supervised work share: children that keep a book, and waits for a status.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]
#![allow(dead_code, reason = "every test file uses its own part of it")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tenure::{Child, ChildHealth, Supervise, Supervisor, SupervisorStatus};

use super::soon;

pub type Log = Arc<Mutex<Vec<String>>>;

pub fn log(log: &Log, line: impl Into<String>) {
    log.lock().unwrap().push(line.into());
}

pub fn lines(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

/// Says that it began, waits until it is told to stop, and says that it has ended, however it did.
pub fn diligent(book: &Log) -> impl Fn(Child) -> BoxFuture<'static, Result<(), String>> + use<> {
    let book = Arc::clone(book);
    move |child| {
        let end = OnDrop(Arc::clone(&book), format!("-{}", child.name()));
        log(&book, format!("+{}", child.name()));
        Box::pin(async move {
            let _end = end;
            child.told_to_stop().await;
            tokio::time::sleep(Duration::from_millis(20)).await; // it takes a while
            Ok(())
        })
    }
}

pub struct OnDrop(pub Log, pub String);

impl Drop for OnDrop {
    fn drop(&mut self) {
        log(&self.0, std::mem::take(&mut self.1));
    }
}

/// Budgets and pauses that a test can wait for.
pub fn hasty(supervise: Supervise) -> Supervise {
    supervise
        .restarts(2, Duration::from_secs(60))
        .back_off(Duration::from_millis(1), Duration::from_millis(1))
}

pub async fn reaches(
    supervisor: &Supervisor,
    wanted: impl Fn(&SupervisorStatus) -> bool,
) -> SupervisorStatus {
    let mut watch = supervisor.watch();
    soon(watch.wait_for(|status| wanted(status))).await.unwrap().clone()
}

pub fn all_run(status: &SupervisorStatus) -> bool {
    status.children.iter().all(|child| child.health == ChildHealth::Running)
}
