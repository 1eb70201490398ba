//! Supervised work: named children that run together on whichever node is elected.

mod child;
mod crew;
mod mode;
mod post;
mod status;
mod supervisor;

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use tenure_core::{ChildName, NameError, SettingsError, SupervisionRules};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

pub use child::{Child, ChildSpec};
pub use mode::{Mode, ModeError};
pub use status::{ChildHealth, ChildStatus, SupervisorState, SupervisorStatus};
pub use supervisor::Supervisor;

use crate::election::Election;
use status::Board;
use supervisor::{Overseer, Place};

const PAUSE: Duration = Duration::from_secs(30);

/// Work to be supervised, in the making: children, how they are restarted, and where they run. Made by
/// [`Election::supervise`], or by [`supervise`] where there may be no election.
#[derive(Clone)]
#[must_use = "nothing is supervised until it is started"]
pub struct Supervise {
    election: Option<Election>,
    mode: Mode,
    chosen: bool,
    children: Vec<ChildSpec>,
    rules: SupervisionRules,
    pause: Duration,
}

/// Work that may have to run without an election: see [`Mode::Off`].
pub const fn supervise() -> Supervise {
    Supervise {
        election: None,
        mode: Mode::On,
        chosen: false,
        children: Vec::new(),
        rules: SupervisionRules::new(),
        pause: PAUSE,
    }
}

impl Election {
    /// Supervises named children on whichever node is elected.
    ///
    #[cfg_attr(feature = "memory", doc = "```")]
    #[cfg_attr(not(feature = "memory"), doc = "```ignore")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = tenure::connect("memory:").await?;
    /// # let node = tenure::Node::builder("worker-1").start(store).await?;
    /// use tenure::{Child, ChildHealth};
    ///
    /// async fn poll(child: Child) -> Result<(), std::io::Error> {
    ///     while let Ok(_term) = child.check() {
    ///         tokio::select! {
    ///             () = child.told_to_stop() => break,
    ///             () = tokio::time::sleep(std::time::Duration::from_secs(1)) => { /* poll */ }
    ///         }
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let supervisor = node.election("coordinator")?.supervise().child("poller", poll).start()?;
    /// supervisor.watch().wait_for(|now| now.children[0].health == ChildHealth::Running).await?;
    /// supervisor.stop().await?; // told to stop, joined, and only then the lease is given back
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Children are started in order, and stopped in reverse. One that ends, in whatever way, is started
    /// again, alone, after a pause. If that happens too often, this node gives its term up
    /// ([`Reason::WorkFailed`](crate::Reason::WorkFailed)), so that another may try, and stands again after
    /// a while. Every child is a task of its own on the runtime of the caller. The lease is given back only
    /// after all of them have been joined.
    pub fn supervise(&self) -> Supervise {
        supervise().stand_for(self)
    }
}

impl Supervise {
    /// The election whose winner does the work.
    pub fn stand_for(mut self, election: &Election) -> Self {
        self.election = Some(election.clone());
        self
    }

    /// Adds a child, after those that were added before: see [`ChildSpec::new`].
    pub fn child<W, F, E>(self, name: impl Into<String>, work: W) -> Self
    where
        W: Fn(Child) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        self.with(ChildSpec::new(name, work))
    }

    /// Adds a child with times of its own, after those that were added before.
    pub fn with(mut self, child: ChildSpec) -> Self {
        self.children.push(child);
        self
    }

    /// How many restarts are borne, of all children together, within which time (default 5 within a
    /// minute). One more, and the work is given up.
    pub const fn restarts(mut self, restarts: u32, within: Duration) -> Self {
        self.rules.restarts = restarts;
        self.rules.within = within;
        self
    }

    /// The pause before a child's first restart, which doubles with each further one, and the longest
    /// (default 100 ms and 10 s). A child that has run for as long as a restart counts begins anew.
    pub const fn back_off(mut self, first: Duration, longest: Duration) -> Self {
        self.rules.first_pause = first;
        self.rules.longest_pause = longest;
        self
    }

    /// How long this node does not stand after it has given the work up (default 30 s), so that another
    /// may try.
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Who decides where the work runs (default [`Mode::On`]).
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Whether this is the node on which the work runs with [`Mode::Off`] (default false). See to it that
    /// there is only one.
    pub const fn chosen(mut self, chosen: bool) -> Self {
        self.chosen = chosen;
        self
    }

    /// Begins to stand, or to work. What is wrong with the settings is said before anything is touched.
    ///
    /// # Errors
    /// [`SuperviseError`].
    pub fn start(mut self) -> Result<Supervisor, SuperviseError> {
        Handle::try_current().map_err(|_| SuperviseError::NoRuntime)?;
        self.rules.children = self.children.iter().map(|child| child.rules).collect();
        self.rules.validate()?;
        let place = match (self.mode, self.election) {
            (Mode::Off, _) if self.chosen => Place::Here,
            (Mode::Off, _) => Place::Elsewhere,
            (Mode::Shadow, Some(election)) => Place::Shadow(election),
            (Mode::On, Some(election)) => Place::Elected(election),
            (mode @ (Mode::Shadow | Mode::On), None) => return Err(SuperviseError::NoElection(mode)),
        };
        let jobs = self.children.into_iter().map(ChildSpec::named).collect::<Result<Vec<_>, _>>()?;
        let mut names = HashSet::new();
        if let Some(twice) = jobs.iter().find(|job| !names.insert(&job.name)) {
            return Err(SuperviseError::SameName(twice.name.clone()));
        }
        if jobs.is_empty() {
            return Err(SuperviseError::NoChildren);
        }
        let board = Board::new(place.mode(), jobs.iter().map(|job| job.name.clone()));
        let stop = CancellationToken::new();
        Ok(Supervisor::start(Overseer { place, jobs, rules: self.rules, pause: self.pause, board, stop }))
    }
}

impl fmt::Debug for Supervise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervise")
            .field("mode", &self.mode)
            .field("children", &self.children)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// Why nothing is supervised. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuperviseError {
    /// There is nothing to supervise.
    #[error("there is nothing to supervise; add a child")]
    NoChildren,
    /// A child's name is unusable.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Two children have one name.
    #[error("two children are called `{0}`; rename one of them")]
    SameName(ChildName),
    /// The mode needs an election.
    #[error("the mode is `{0}`, but there is no election to stand for; use `stand_for`, or the mode `off`")]
    NoElection(Mode),
    /// The budget cannot work.
    #[error(transparent)]
    Rules(#[from] SettingsError),
    /// Children are tasks, and there is no runtime.
    #[error("supervised work needs a Tokio runtime: call `start` within one")]
    NoRuntime,
}
