//! The supervisor: stands, sees to the work while it leads, and stands again.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_core::{Reason, SupervisionRules};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::child::Job;
use super::crew::Crew;
use super::mode::Mode;
use super::post::Post;
use super::status::{Board, SupervisorState, SupervisorStatus};
use crate::election::Election;
use crate::error::ElectionError;
use crate::office::Stage;

/// Supervised work on this node. Dropping it stops the work, and gives the lease back after that, in the
/// background.
pub struct Supervisor {
    stop: CancellationToken,
    status: watch::Receiver<SupervisorStatus>,
    outcome: Arc<OnceLock<Outcome>>,
}

type Outcome = Result<(), Arc<ElectionError>>;

impl Supervisor {
    pub(super) fn start(overseer: Overseer) -> Self {
        let (stop, status) = (overseer.stop.clone(), overseer.board.reader());
        let outcome = Arc::new(OnceLock::new());
        let ended = Arc::clone(&outcome);
        tokio::spawn(async move {
            let _ = ended.set(overseer.run().await.map_err(Arc::new));
            overseer.board.enter(SupervisorState::Ended, None);
        });
        Self { stop, status, outcome }
    }

    /// How the work is doing now.
    #[must_use]
    pub fn status(&self) -> SupervisorStatus {
        self.status.borrow().clone()
    }

    /// Follows how the work is doing. It does not keep the work alive.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<SupervisorStatus> {
        self.status.clone()
    }

    /// Stops every child, in reverse order, gives the lease back, and waits for that.
    ///
    /// # Errors
    /// As for [`ended`](Supervisor::ended).
    ///
    /// # Cancel safety
    /// Once polled, the work is stopped even if the future is dropped.
    pub async fn stop(&self) -> Result<(), Arc<ElectionError>> {
        self.stop.cancel();
        self.ended().await
    }

    /// Waits until the supervisor has come to its end: everything has stopped, and nothing is held.
    ///
    /// # Errors
    /// Why this node does not stand any more: the node is at its end, is not eligible, stands elsewhere,
    /// or the election was ended.
    ///
    /// # Cancel safety
    /// Safe: dropping the future changes nothing.
    pub async fn ended(&self) -> Result<(), Arc<ElectionError>> {
        // An error means that the runtime is shutting down, and has dropped the supervisor's task.
        let _ = self.watch().wait_for(|status| status.state == SupervisorState::Ended).await;
        self.outcome.get().cloned().unwrap_or(Ok(()))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// The supervisor's task.
pub(super) struct Overseer {
    pub place: Place,
    pub jobs: Vec<Job>,
    pub rules: SupervisionRules,
    /// How long this node does not stand after it has given the work up.
    pub pause: Duration,
    pub board: Board,
    pub stop: CancellationToken,
}

/// Where the work runs.
pub(super) enum Place {
    /// On the elected node.
    Elected(Election),
    /// Nowhere; but a node is elected.
    Shadow(Election),
    /// Here.
    Here,
    /// On another node, by its owner's choice.
    Elsewhere,
}

impl Place {
    pub(super) const fn mode(&self) -> Mode {
        match self {
            Self::Elected(_) => Mode::On,
            Self::Shadow(_) => Mode::Shadow,
            Self::Here | Self::Elsewhere => Mode::Off,
        }
    }
}

impl Overseer {
    async fn run(&self) -> Result<(), ElectionError> {
        match &self.place {
            Place::Elected(election) | Place::Shadow(election) => self.stand(election).await,
            Place::Here => {
                self.work_here().await;
                Ok(())
            }
            Place::Elsewhere => {
                self.stop.cancelled().await;
                Ok(())
            }
        }
    }

    async fn stand(&self, election: &Election) -> Result<(), ElectionError> {
        loop {
            self.board.enter(SupervisorState::Waiting, None);
            let office = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Ok(()),
                granted = election.granted() => granted?,
            };
            // Children have their own times; this is for when the supervisor cannot keep them.
            office.allow(self.rules.longest_stop() + Duration::from_secs(1));
            let given_up = self.work_under(Post::elected(&office, election)).await;
            // Whatever was let through a gate may be under way still.
            office.until(Stage::Stopped).await;
            let ended = office.reason() == Some(Reason::Ended);
            if ended || self.stop.is_cancelled() {
                election.given_back(&office).await;
                return if ended { Err(ElectionError::Ended) } else { Ok(()) };
            }
            if given_up {
                self.pause(Some(election)).await;
            }
        }
    }

    async fn work_here(&self) {
        while !self.stop.is_cancelled() {
            if self.work_under(Post::Chosen(CancellationToken::new())).await {
                self.pause(None).await;
            }
        }
    }

    /// True if the work was given up because it failed too often.
    async fn work_under(&self, post: Post) -> bool {
        self.board.enter(SupervisorState::Leading, post.term());
        if self.place.mode() == Mode::Shadow {
            tokio::select! {
                () = post.lost().cancelled() => {}
                () = self.stop.cancelled() => post.give_up(Reason::Resigned),
            }
            return false;
        }
        Crew::new(&self.jobs, &self.rules, &self.board, post).serve(&self.stop).await
    }

    /// Lets others try.
    async fn pause(&self, election: Option<&Election>) {
        self.board.enter(SupervisorState::Pausing, None);
        let node_ends = async {
            match election {
                Some(election) => {
                    let mut held = election.link().status.held.subscribe();
                    let _ = held.wait_for(Option::is_none).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(self.pause) => {}
            () = node_ends => {}
        }
    }
}
