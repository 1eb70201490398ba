//! One grant of one election: the state that guards read, and the roster of all of them.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{ElectionName, Reason, SessionId, Term};
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
    work: Mutex<Work>,
}

/// The task that works under the office, where Tenure runs it.
#[derive(Default)]
struct Work {
    task: Option<AbortHandle>,
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
        let (state, lost, work) = (AtomicU64::new(0), CancellationToken::new(), Mutex::default());
        Arc::new(Self { id, election, term, session, page, state, lost, work })
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

    /// This task works under the office. If its time is over already, it ends here.
    pub(crate) fn employ(&self, task: AbortHandle) {
        let mut work = lock(&self.work);
        if work.cut_off {
            task.abort();
        }
        work.task = Some(task);
    }

    /// The work has had its time to stop by itself. False if there is no task to abort, because
    /// the application works under the office by hand.
    pub(crate) fn cut_off(&self) -> bool {
        let mut work = lock(&self.work);
        work.cut_off = true;
        if let Some(task) = &work.task {
            task.abort();
        }
        work.task.is_some()
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
