//! What can go wrong, one enum per boundary. Each message says what is true now and what to do; `source()` is the
//! error that caused it.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use tenure_core::{NameError, NodeId, Reason, SettingsError, TaskListName, Term};
use tenure_store::{StoreError, UrlError};

/// Whatever caused an error.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Why there is no connection to a store. Nothing was changed on it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is wrong; the message says which part.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The scheme is known, but its store was left out of this build.
    #[error(
        "the store for `{scheme}:` is not part of this build; enable the feature `{feature}` of `tenure`"
    )]
    FeatureOff {
        /// What was asked for.
        scheme: String,
        /// The feature of the crate `tenure` that has it.
        feature: &'static str,
    },
    /// There is no place for a store without a URL.
    #[error(
        "there is no state directory for the default store: neither XDG_STATE_HOME nor HOME is an absolute \
         path; set one, or give a store URL such as `sqlite:./tenure.db`"
    )]
    NoStateDirectory,
    /// The directory of the default store cannot be made.
    #[error("the directory `{path}` for the default store cannot be created: {source}")]
    Directory {
        /// Which directory.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A variable of the environment cannot be used.
    #[error("{name} in the environment cannot be used: {source}")]
    Environment {
        /// Which variable.
        name: &'static str,
        /// What is wrong with it.
        source: BoxError,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a node did not start. No session is left behind on the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The node id is unusable. Nothing was touched.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The settings cannot work. Nothing was touched.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The drift is beyond what can be counted on. Nothing was touched.
    #[error(
        "the drift is {thousandths} thousandths, but must be at most 500; clocks that differ that much cannot be used"
    )]
    Drift {
        /// What was asked for.
        thousandths: u16,
    },
    /// A health probe runs on the application's runtime, and there is none. Nothing was touched.
    #[error("a health probe needs a Tokio runtime: call `start` within one")]
    NoRuntime,
    /// The system refused what the driver needs: a thread, a timer, a page of memory.
    #[error("the system refused what the driver needs: {0}")]
    System(#[from] std::io::Error),
    /// Another process keeps a session with this node id alive.
    #[error(
        "another live process uses the node id `{node}`; choose another id for this one, or stop that one"
    )]
    NodeIdTaken {
        /// The id.
        node: NodeId,
    },
    /// The store cannot be used until somebody changes something.
    #[error("the store cannot be used: {problem}")]
    Misconfigured {
        /// What is wrong and what to do.
        problem: String,
        /// The error that says so: a [`StoreError`], or the [`SettingsError`] of a session that is shorter than asked.
        source: Option<BoxError>,
    },
    /// The time that was given to `start_timeout` is over.
    #[error("no session could be opened within {limit:?}: {problem}")]
    TimedOut {
        /// The time that there was.
        limit: Duration,
        /// What stood in the way.
        problem: String,
        /// The store's last error, if it gave one.
        source: Option<StoreError>,
    },
    /// The driver panicked: a bug in the store or in Tenure.
    #[error("the driver thread died while it opened the session; its panic message says why")]
    DriverDied,
}

/// Why a node is at its end. Nothing is held any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It was closed.
    Closed,
    /// Its session lapsed, and another live process has taken its id since.
    NodeIdTaken(NodeId),
    /// Its session lapsed, and the store cannot be used until somebody changes something.
    Misconfigured(String),
    /// The thread that renews the session has died.
    DriverDied,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the node is closed; start another to go on"),
            Self::NodeIdTaken(node) => {
                write!(f, "the node is at its end: another live process uses the node id `{node}`")
            }
            Self::Misconfigured(problem) => {
                write!(f, "the node is at its end: the store cannot be used: {problem}")
            }
            Self::DriverDied => f.write_str("the node is at its end: its driver thread died"),
        }
    }
}

/// Why an election did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The settings of this node say that it never leads.
    #[error("this node is not eligible: it observes, but never leads")]
    NotEligible,
    /// One candidacy per node and election. The other one goes on.
    #[error("this node already stands for the election, or leads it; wait for that to end")]
    AlreadyStanding,
    /// A former leadership of this node is over, but its work has not stopped.
    #[error("the work of this node's former leadership has not stopped; drop its `Leadership` first")]
    StillStopping,
    /// The election was ended (deleted) while this node stood for it or led it.
    #[error("the election was ended; standing again would start it anew")]
    Ended,
    /// `lead` runs its work as a task, and there is no runtime.
    #[error("`lead` needs a Tokio runtime: call it within one")]
    NoRuntime,
    /// The election cannot be deleted while somebody leads it. Nothing changed.
    #[error("the election has a leader; resign it first, or use `delete_even_if_led`")]
    Led,
    /// There is nothing to delete. Nothing changed.
    #[error("there is no such election: nobody ever stood for it, or it was deleted before")]
    Absent,
    /// The store gave no answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The node is at its end.
    #[error("{0}")]
    Closed(Ending),
}

/// How [`Election::lead`](crate::Election::lead) ended without a value.
#[derive(Debug)]
#[non_exhaustive]
pub enum LeadError<E> {
    /// The work failed while it led. The lease was given up.
    ///
    /// `source()` is `None` here, because `E` need not be an [`Error`] (an `anyhow::Error` and a `String` are none): the
    /// causes of the work's own error are asked of that error, by matching on this variant.
    Work(E),
    /// Leadership was given up, and the work did not end by itself within its grace: it was cut
    /// off. The lease was given up after that.
    CutOff,
    /// This node does not stand any more.
    Election(ElectionError),
}

impl<E: fmt::Display> fmt::Display for LeadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(error) => error.fmt(f),
            Self::CutOff => f.write_str("leadership was given up, and the work was cut off after its grace"),
            Self::Election(error) => error.fmt(f),
        }
    }
}

// Not `E: Error`, so that `E` may be `anyhow::Error` or a `String`.
impl<E: fmt::Debug + fmt::Display> Error for LeadError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Work(_) | Self::CutOff => None,
            Self::Election(error) => error.source(),
        }
    }
}

impl<E> From<ElectionError> for LeadError<E> {
    fn from(error: ElectionError) -> Self {
        Self::Election(error)
    }
}

/// This process does not lead under that term any more, and never will again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLeader {
    /// The term that is over; [`Term::NONE`] if a [`Gate`](crate::Gate) is asked before the first one.
    pub term: Term,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for NotLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { term, reason } = self;
        match *term {
            Term::NONE => write!(f, "this node does not lead: {reason}"),
            _ => write!(f, "term {term} is over: {reason}"),
        }
    }
}

impl Error for NotLeader {}

/// This process does not own that partition any more, or not since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the partition was given up under term {term}: {reason}")]
pub struct NotOwner {
    /// The term under which it was owned.
    pub term: Term,
    /// Why; `Asked` if it was revoked.
    pub reason: Reason,
}

/// Why there are no partitions to work on, or to divide.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionsError {
    /// The name is unusable. Nothing was touched.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The store cannot say who owns what. Nothing was touched.
    #[error(
        "this store keeps no ledger of partitions; use another store, or an election for each part of the work"
    )]
    NoLedger,
    /// The other stream of this node goes on.
    #[error("this node works on the task list `{list}` already; drop its other `Partitions` first")]
    AlreadyWorking {
        /// Which.
        list: TaskListName,
    },
    /// There is such a task list already, and not the same. Nothing changed.
    #[error("there is a task list `{list}` already; change that one, or drop it first")]
    Exists {
        /// Which.
        list: TaskListName,
    },
    /// No coordinator could divide so many. Nothing changed.
    #[error(
        "the task list `{list}` would have {partitions} partitions, but at most {most} are supported; have each do more of the work",
        most = crate::TaskList::MOST_PARTITIONS
    )]
    TooMany {
        /// The task list.
        list: TaskListName,
        /// How many it would have.
        partitions: u32,
    },
    /// There is nothing to change. Nothing changed.
    #[error("there is no task list `{list}`")]
    Absent {
        /// Which.
        list: TaskListName,
    },
    /// What the store says about it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This node does not coordinate.
    #[error(transparent)]
    Election(#[from] ElectionError),
}

/// Why leadership was not handed over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// There was nothing to hand over.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    /// The name cannot be that of a node. Leadership goes on.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The node does not stand for the election. Leadership goes on.
    #[error("`{to}` does not stand for the election, so leadership stays here; candidates are: {candidates}")]
    NotStanding {
        /// Who was named.
        to: NodeId,
        /// Who stands, in order of succession.
        candidates: String,
    },
    /// The store did not say who stands. Leadership goes on.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The node is at its end.
    #[error("{0}")]
    Closed(Ending),
}

/// Why a fenced transaction did not happen.
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError<E> {
    /// Leadership was over before it began. Nothing was written.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
    /// Only SQL stores have transactions. Nothing was written.
    #[error("this node's store has no transactions of its own; write `term` beside your data, and compare")]
    NotSql,
    /// What the store says about it.
    #[error(transparent)]
    Store(#[from] tenure_store::TransactionError<E>),
}
