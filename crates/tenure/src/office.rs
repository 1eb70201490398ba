//! One grant of one election: the state that guards read, and the roster of all of them.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tenure_core::{ElectionName, Reason, SessionId, Term};
use tenure_store::Cause;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::error::NotLeader;
use crate::page::{Page, Sight};
use crate::reason;

/// What one grant gave this process. It opens once and closes once.
pub(crate) struct Office {
    /// The candidacy that won it: unique within the node.
    pub id: u64,
    pub election: ElectionName,
    pub term: Term,
    pub session: SessionId,
    page: Arc<Page>,
    /// 0 while it is held; then the reason why it is not.
    state: AtomicU64,
    lost: CancellationToken,
    stage: watch::Sender<Stage>,
    work: Mutex<Work>,
    /// Why the lease is given back, if not by mere resignation.
    cause: OnceLock<Cause>,
}

/// How far the work under an office has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// It may go on, or has its time to stop by itself.
    Working,
    /// That time is over.
    CutOff,
    /// It has stopped.
    Stopped,
}

/// The tasks that work under the office, where Tenure runs them.
#[derive(Default)]
struct Work {
    tasks: Vec<AbortHandle>,
    /// Whether there ever was one.
    employed: bool,
    /// How long they may take to stop after a willing end, if not as long as the node says.
    grace: Option<Duration>,
    /// Its time to stop by itself is over.
    cut_off: bool,
}

impl Office {
    pub(crate) fn new(
        id: u64,
        election: ElectionName,
        term: Term,
        session: SessionId,
        page: Arc<Page>,
    ) -> Arc<Self> {
        let (state, lost) = (AtomicU64::new(0), CancellationToken::new());
        let (stage, work) = (watch::Sender::new(Stage::Working), Mutex::default());
        let cause = OnceLock::new();
        Arc::new(Self { id, election, term, session, page, state, lost, stage, work, cause })
    }

    /// The deadline is read before the clock, and the state after it: what all three say was true
    /// at the instant when the clock was read.
    pub(crate) fn check(&self) -> Result<Term, NotLeader> {
        let reason = match (self.page.look(), self.state.load(Acquire)) {
            (Sight::Held, 0) => return Ok(self.term),
            (Sight::Over(Reason::Forked), _) => Reason::Forked,
            (Sight::Over(reason), 0) => reason,
            (_, code) => reason::decode(code).unwrap_or(Reason::Lapsed),
        };
        Err(NotLeader { term: self.term, reason })
    }

    /// Closes the guard, then tells the work. Only the first reason counts; false if there was one.
    pub(crate) fn close(&self, reason: Reason) -> bool {
        let first = self.state.compare_exchange(0, reason::encode(reason), AcqRel, Acquire).is_ok();
        self.lost.cancel();
        first
    }

    /// Gives the office up, if it is still held. If not, it is closed for the reason that is told.
    pub(crate) fn surrender(&self) -> Result<(), NotLeader> {
        let lost = match self.check() {
            Ok(_) if self.close(Reason::Resigned) => return Ok(()),
            Ok(_) => self.reason().unwrap_or(Reason::Lapsed),
            // The office belongs to the parent, and so do the locks behind it.
            Err(NotLeader { reason: Reason::Forked, .. }) => Reason::Forked,
            Err(NotLeader { reason, .. }) => {
                self.close(reason);
                reason
            }
        };
        Err(NotLeader { term: self.term, reason: lost })
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        reason::decode(self.state.load(Acquire))
    }

    pub(crate) fn forked(&self) -> bool {
        self.page.forked()
    }

    /// Cancelled once the office is closed.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Waits until the work has come so far.
    pub(crate) async fn until(&self, stage: Stage) {
        // The office has the other end, and is held.
        let _ = self.stage.subscribe().wait_for(|now| *now >= stage).await;
    }

    /// Everything that was done under the office has stopped.
    pub(crate) fn stopped(&self) {
        self.stage.send_replace(Stage::Stopped);
    }

    /// Says why the lease will be given back. Only the first cause counts.
    pub(crate) fn explain(&self, cause: Cause) {
        let _ = self.cause.set(cause);
    }

    /// What the history is told when the lease is given back.
    pub(crate) fn cause(&self) -> Cause {
        self.cause.get().copied().unwrap_or_default()
    }

    /// This task works under the office. If its time is over already, it ends here.
    pub(crate) fn employ(&self, task: AbortHandle) {
        let mut work = lock(&self.work);
        if work.cut_off {
            task.abort();
        }
        work.tasks.retain(|task| !task.is_finished());
        work.tasks.push(task);
        work.employed = true;
    }

    /// Work under the office may take as long as that to stop after a willing end.
    pub(crate) fn allow(&self, grace: Duration) {
        lock(&self.work).grace = Some(grace);
    }

    pub(crate) fn grace(&self) -> Option<Duration> {
        lock(&self.work).grace
    }

    /// The work has had its time to stop by itself. False if there is no task to abort, because
    /// the application works under the office by hand.
    pub(crate) fn cut_off(&self) -> bool {
        self.stage.send_if_modified(|stage| {
            *stage < Stage::CutOff && {
                *stage = Stage::CutOff;
                true
            }
        });
        let mut work = lock(&self.work);
        work.cut_off = true;
        for task in &work.tasks {
            task.abort();
        }
        work.employed
    }
}

/// All offices whose work may still run.
#[derive(Default)]
pub(crate) struct Roster {
    offices: Mutex<HashMap<u64, Arc<Office>>>,
}

impl Roster {
    pub(crate) fn enter(&self, office: Arc<Office>) {
        lock(&self.offices).insert(office.id, office);
    }

    pub(crate) fn strike(&self, id: u64) {
        lock(&self.offices).remove(&id);
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<Office>> {
        lock(&self.offices).get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Office>> {
        lock(&self.offices).values().cloned().collect()
    }

    pub(crate) fn close_all(&self, reason: Reason) {
        for office in self.all() {
            office.close(reason);
        }
    }

    pub(crate) fn cut_off_all(&self) {
        for office in self.all() {
            office.cut_off();
        }
    }
}

/// Locks even after a panic elsewhere: what is guarded here is whole after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
