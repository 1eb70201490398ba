//! How supervised work is doing, for whoever shows it.

use std::fmt;

use tenure_core::{ChildName, ChildState, Supervision, Term};
use tokio::sync::watch;

use super::mode::Mode;

/// How supervised work is doing on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupervisorStatus {
    /// Who decides where the work runs.
    pub mode: Mode,
    /// What this node is doing about it.
    pub state: SupervisorState,
    /// The term that this node leads under, or whose work is being stopped.
    pub term: Option<Term>,
    /// The children, in the order in which they are started.
    pub children: Vec<ChildStatus>,
}

/// What a node does about its supervised work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SupervisorState {
    /// It waits to be elected; with [`Mode::Off`], another node was chosen.
    Waiting,
    /// It leads, or was chosen. The work runs, unless this is a [`Mode::Shadow`].
    Leading,
    /// It leads no longer. The work is being stopped.
    Stopping,
    /// It gave the work up because that failed too often, and does not stand for a while.
    Pausing,
    /// It has come to its end.
    Ended,
}

impl SupervisorState {
    /// Its name, as status pages and metrics show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Leading => "leading",
            Self::Stopping => "stopping",
            Self::Pausing => "pausing",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for SupervisorState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a child is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildStatus {
    /// Its name.
    pub name: ChildName,
    /// What it is doing.
    pub health: ChildHealth,
    /// How often it was restarted, since the supervisor was started.
    pub restarts: u64,
    /// How it last ended when it should not have.
    pub last_error: Option<String>,
}

/// What a child is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChildHealth {
    /// It does not run here, and need not.
    Idle,
    /// It was started, and has not said yet that it is up.
    Starting,
    /// It runs.
    Running,
    /// It ended, and will be started again.
    BackingOff,
    /// It was told to stop, and has not ended yet.
    Stopping,
    /// It ended once too often: because of it, this node gave the work up.
    Failed,
}

impl ChildHealth {
    /// Its name, as status pages and metrics show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::BackingOff => "backing_off",
            Self::Stopping => "stopping",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for ChildHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where the supervisor writes, and everybody reads.
pub(super) struct Board(watch::Sender<SupervisorStatus>);

impl Board {
    pub(super) fn new(mode: Mode, names: impl Iterator<Item = ChildName>) -> Self {
        let idle = |name| ChildStatus { name, health: ChildHealth::Idle, restarts: 0, last_error: None };
        let children = names.map(idle).collect();
        Self(watch::Sender::new(SupervisorStatus {
            mode,
            state: SupervisorState::Waiting,
            term: None,
            children,
        }))
    }

    pub(super) fn reader(&self) -> watch::Receiver<SupervisorStatus> {
        self.0.subscribe()
    }

    pub(super) fn enter(&self, state: SupervisorState, term: Option<Term>) {
        self.write(|status| {
            status.state = state;
            status.term = term;
        });
    }

    pub(super) fn restarted(&self, child: usize) {
        self.write(|status| status.children[child].restarts += 1);
    }

    pub(super) fn failed(&self, child: usize, error: String) {
        self.write(|status| status.children[child].last_error = Some(error));
    }

    /// Shows what the children are doing, and which one has failed for good.
    pub(super) fn show(&self, supervision: &Supervision, culprit: Option<usize>) {
        self.write(|status| {
            for (index, child) in status.children.iter_mut().enumerate() {
                child.health = match supervision.state(index) {
                    _ if culprit == Some(index) => ChildHealth::Failed,
                    ChildState::Waiting | ChildState::Stopped => ChildHealth::Idle,
                    ChildState::Starting { .. } => ChildHealth::Starting,
                    ChildState::Running { .. } => ChildHealth::Running,
                    ChildState::BackingOff { .. } => ChildHealth::BackingOff,
                    ChildState::Stopping { .. } | ChildState::Aborted => ChildHealth::Stopping,
                };
            }
        });
    }

    /// Wakes readers only if something changed.
    fn write(&self, change: impl FnOnce(&mut SupervisorStatus)) {
        self.0.send_if_modified(|status| {
            let before = status.clone();
            change(status);
            *status != before
        });
    }
}
