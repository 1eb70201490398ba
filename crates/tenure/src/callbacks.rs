//! Callbacks, for applications that are built around them.
//!
//! Standing begins with [`Callbacks::stand`], when everything is wired: a win cannot come before the
//! application is ready for it.

use std::future::Future;
use std::sync::Arc;

use tenure_core::{NodeState, Reason, SessionId, Term};
use tenure_store::Pending;

use crate::cluster::{Cluster, View};
use crate::election::Election;
use crate::error::{ElectionError, Ending};
use crate::leadership::Leadership;

type OnElected = Box<dyn FnMut(Leadership) -> Pending<'static, ()> + Send>;
type OnDeposed = Box<dyn FnMut(Term, Reason) -> Pending<'static, ()> + Send>;
type OnMembership = Box<dyn FnMut(Arc<View>) -> Pending<'static, ()> + Send>;

/// What to do when this node comes to lead, when it does not any more, and when nodes come and go.
#[must_use = "nothing happens until it stands"]
pub struct Callbacks {
    election: Election,
    on_elected: Option<OnElected>,
    on_deposed: Option<OnDeposed>,
    on_membership: Option<(Cluster, OnMembership)>,
}

impl Election {
    /// Stands with callbacks instead of work: see [`Callbacks`]. Most programs want
    /// [`lead`](Election::lead), which cannot forget to stop the work.
    pub fn callbacks(&self) -> Callbacks {
        Callbacks { election: self.clone(), on_elected: None, on_deposed: None, on_membership: None }
    }
}

impl Callbacks {
    /// Called when this node is elected. It starts the work, and returns.
    pub fn on_elected<C, F>(mut self, mut callback: C) -> Self
    where
        C: FnMut(Leadership) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_elected = Some(Box::new(move |leadership| Box::pin(callback(leadership))));
        self
    }

    /// Called when this node leads no longer, with the term that is over and the reason. Once for every
    /// call of [`on_elected`](Callbacks::on_elected), and after it has returned. Checks fail by then.
    ///
    /// It stops the work, and returns when that has stopped: only then is the lease given back, where it
    /// was given up willingly, and does this node stand again.
    pub fn on_deposed<C, F>(mut self, mut callback: C) -> Self
    where
        C: FnMut(Term, Reason) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_deposed = Some(Box::new(move |term, reason| Box::pin(callback(term, reason))));
        self
    }

    /// Called with the cluster as it is when standing begins, and whenever a node has come, gone, or
    /// fallen silent. A callback that is slow sees the latest, and not what was in between.
    pub fn on_membership_change<C, F>(mut self, cluster: &Cluster, mut callback: C) -> Self
    where
        C: FnMut(Arc<View>) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_membership = Some((cluster.clone(), Box::new(move |view| Box::pin(callback(view)))));
        self
    }

    /// Stands, again and again, until the node is closed.
    ///
    /// # Errors
    /// [`ElectionError`]: why this node does not stand any more.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws; if this node leads, that says that its work has stopped, and
    /// [`on_deposed`](Callbacks::on_deposed) is not called.
    pub async fn stand(self) -> Result<(), ElectionError> {
        let Self { election, mut on_elected, mut on_deposed, on_membership } = self;
        let membership = watch(on_membership);
        let leadership = async {
            loop {
                let leadership = match election.elected().await {
                    Ok(leadership) => leadership,
                    Err(ElectionError::Closed(Ending::Closed)) => return Ok(()),
                    Err(error) => return Err(error),
                };
                if let Some(callback) = &mut on_elected {
                    callback(leadership.clone()).await;
                }
                let reason = leadership.lost().await;
                if let Some(callback) = &mut on_deposed {
                    callback(leadership.term(), reason).await;
                }
                // The application may have kept a clone; what it has said counts.
                leadership.stopped();
                match reason {
                    Reason::Closing => return Ok(()),
                    Reason::Ended => return Err(ElectionError::Ended),
                    _ => {}
                }
            }
        };
        tokio::select! {
            ended = leadership => ended,
            never = membership => match never {},
        }
    }
}

/// Tells of every change. Never returns.
async fn watch(callback: Option<(Cluster, OnMembership)>) -> std::convert::Infallible {
    if let Some((mut cluster, mut callback)) = callback {
        let mut told = None;
        let mut view = Some(cluster.view());
        while let Some(seen) = view {
            let now = who(&seen);
            if seen.seen.is_some() && told.as_ref() != Some(&now) {
                told = Some(now);
                callback(seen).await;
            }
            view = cluster.changed().await;
        }
    }
    std::future::pending().await
}

/// What counts as a change.
fn who(view: &View) -> Vec<(SessionId, NodeState, bool)> {
    let member =
        |member: &crate::cluster::Member| (member.record.session(), member.record.state, member.lives);
    view.members.iter().map(member).collect()
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Callbacks").field("election", &self.election).finish_non_exhaustive()
    }
}
