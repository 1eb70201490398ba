//! A child: what it is made of, what it is given, and its task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tenure_core::{ChildName, ChildRules, NameError, Reason, Term};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::NotLeader;
use crate::leadership::{Duty, Leadership};

const STOP_WITHIN: Duration = Duration::from_secs(5);

/// What a child is made of: a name, work, and how long it may take to come up and to stop.
#[derive(Clone)]
#[must_use = "a child does nothing until it is supervised"]
pub struct ChildSpec {
    pub(super) name: String,
    pub(super) work: Work,
    pub(super) rules: ChildRules,
}

pub(super) type Work = Arc<dyn Fn(Child) -> Running + Send + Sync>;
pub(super) type Running = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

impl ChildSpec {
    /// A child that is up as soon as it is started, and has 5 s to stop.
    ///
    /// `work` is called for every start. It is to run until it is told to stop: however it ends before,
    /// it is started again.
    pub fn new<W, F, E>(name: impl Into<String>, work: W) -> Self
    where
        W: Fn(Child) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let work = Arc::new(work);
        // Called within the task, so that a panic before the first await is a failure like any other.
        let work = move |child| -> Running {
            let work = Arc::clone(&work);
            Box::pin(async move { work(child).await.map_err(|error| error.to_string()) })
        };
        let rules = ChildRules { start_within: None, stop_within: STOP_WITHIN };
        Self { name: name.into(), work: Arc::new(work), rules }
    }

    /// It says itself when it is up, by [`Child::ready`], and children after it are started only then. If
    /// it takes longer than that, it is aborted, which counts as a failure.
    pub const fn start_within(mut self, limit: Duration) -> Self {
        self.rules.start_within = Some(limit);
        self
    }

    /// How long it may take to stop once it is told to (default 5 s). It is then aborted. After an
    /// unwilling loss there is less time: half the node's stop margin, for all children together.
    pub const fn stop_within(mut self, limit: Duration) -> Self {
        self.rules.stop_within = limit;
        self
    }

    pub(super) fn named(self) -> Result<Job, NameError> {
        Ok(Job { name: ChildName::new(&self.name)?, work: self.work })
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("name", &self.name)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// A child whose name is in order.
pub(super) struct Job {
    pub(super) name: ChildName,
    pub(super) work: Work,
}

/// What a running child is given: by what right it works, and when to stop. Clones are cheap.
#[derive(Clone)]
pub struct Child {
    pub(super) name: ChildName,
    pub(super) right: Right,
    pub(super) stop: CancellationToken,
    pub(super) life: Life,
    pub(super) up: mpsc::UnboundedSender<Life>,
}

/// One life of one child: its place in the order, and which life it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    pub child: usize,
    pub number: u64,
}

/// By what right children work.
#[derive(Clone)]
pub(super) enum Right {
    /// This node was elected.
    Elected(Leadership),
    /// This node was chosen, until the token is cancelled.
    Chosen(CancellationToken),
}

impl Child {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &ChildName {
        &self.name
    }

    /// The term, if this node leads at this instant: see [`Leadership::check`]. With
    /// [`Mode::Off`](crate::Mode) it is [`Term::NONE`], which every fence refuses once an elected leader
    /// has written.
    ///
    /// # Errors
    /// [`NotLeader`] with the reason.
    pub fn check(&self) -> Result<Term, NotLeader> {
        match &self.right {
            Right::Elected(leadership) => leadership.check(),
            Right::Chosen(over) if over.is_cancelled() => {
                Err(NotLeader { term: Term::NONE, reason: Reason::Resigned })
            }
            Right::Chosen(_) => Ok(Term::NONE),
        }
    }

    /// What it works under; `None` with [`Mode::Off`](crate::Mode).
    #[must_use]
    pub const fn leadership(&self) -> Option<&Leadership> {
        match &self.right {
            Right::Elected(leadership) => Some(leadership),
            Right::Chosen(_) => None,
        }
    }

    /// A token that is cancelled when it is this child's turn to stop. Cancelling it yourself changes
    /// nothing for others.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Says that this child is up: for children that are to be [up in time](ChildSpec::start_within).
    pub fn ready(&self) {
        // If nobody hears it, it is about to be aborted anyway.
        let _ = self.up.send(self.life);
    }

    /// Waits until it is this child's turn to stop.
    ///
    /// # Cancel safety
    /// Safe: dropping the future changes nothing.
    pub async fn told_to_stop(&self) {
        self.stop.cancelled().await;
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("name", &self.name)
            .field("check", &self.check())
            .finish_non_exhaustive()
    }
}

/// The task of one life. The order of the fields matters: the work is dropped first, and then its share
/// of the duty, so that the lease is never given back under a child that is still there.
pub(super) struct Task {
    pub(super) work: Running,
    #[expect(dead_code, reason = "dropping it says that this child has stopped")]
    pub(super) duty: Option<Arc<Duty>>,
}

impl Future for Task {
    type Output = Result<(), String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.work.as_mut().poll(context)
    }
}
