//! Leader election and failover: of several processes exactly one does the work, and when it
//! fails, another takes over.
//!
#![cfg_attr(feature = "memory", doc = "```")]
#![cfg_attr(not(feature = "memory"), doc = "```ignore")]
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = tenure::connect("memory:").await?; // or "sqlite:./tenure.db"
//! let node = tenure::Node::builder("worker-1").ttl(Duration::from_secs(10)).start(store).await?;
//! let election = node.election("reports")?;
//!
//! // Runs while elected, is cancelled on loss, and joined before the lease is given up.
//! let pages = election
//!     .lead(async |leadership: tenure::Leadership| {
//!         let mut pages = 0;
//!         while let Ok(term) = leadership.check() {
//!             print(pages, term).await?; // the printer refuses terms below the highest it has seen
//!             pages += 1;
//!             if pages == 3 {
//!                 break;
//!             }
//!         }
//!         Ok::<_, std::io::Error>(pages)
//!     })
//!     .await?;
//! assert_eq!(pages, 3);
//! node.close().await;
//! # Ok(())
//! # }
//! # async fn print(_: u32, _: tenure::Term) -> std::io::Result<()> { Ok(()) }
//! ```
//!
//! [`connect_from_env`] finds the store as the command `tenure` does. [`blocking`] has the same for programs made of
//! threads.
//!
//! By hand: [`Election::elected`] gives a [`Leadership`] to check, to wait on, and to resign;
//! [`Election::observe`] only watches. [`Election::supervise`] runs several named children under one
//! term, and [`Node::subscribe`] tells what happens.
//!
//! # The clock model
//!
//! Every node opens one *session* on the store, and renews it with one write per third of its
//! `ttl`, however many elections hang from it. A leader counts its session from the instant
//! *before* the renewal left, slowly, and less a margin; a candidate takes over only after it has
//! seen the leader silent for the whole `ttl`. So as long as
//!
//! * clocks differ in *rate* by no more than the `drift` setting (10 %; the time that they show
//!   does not matter, and wall clocks decide nothing),
//! * the store keeps what it has confirmed, and
//! * nobody edits its records by hand,
//!
//! at any instant at most one process passes [`Leadership::check`] for an election, and terms
//! strictly rise. The clock is `CLOCK_BOOTTIME`: it goes on while a machine is suspended.
//!
//! The session is renewed on a thread of its own, so the application's blocking code cannot starve
//! it. That thread would also renew for an application that is wedged: give the node a
//! [`health`](NodeBuilder::health) probe if that can happen to yours. A second thread only looks at
//! the clock, and tells the work to stop when the first is stalled.
//!
//! # What is not promised
//!
//! * **Nothing can stop a process that pauses between its check and its side effect.** It may wake
//!   up long after another was elected. Only the resource can refuse it: send the *term* along,
//!   and compare. [`Fence`] does so where you write the resource yourself;
//!   `Leadership::transaction` where your data is in the store's SQLite file.
//! * Nobody leads through an outage of the store that is longer than the `ttl`.
//! * Tasks, threads and processes that your work starts are yours to stop.
//!
//! # Dropping futures
//!
//! Every async function says what dropping its future does. In short: waits ([`Election::elected`],
//! [`Election::lead`], [`NodeBuilder::start`]) are undone, and whatever they had won is given
//! back; reads have no effect; resignations and [`Node::close`] go on in the background.

pub mod blocking;
mod builder;
mod callbacks;
mod cluster;
mod connect;
mod driver;
mod election;
mod error;
mod event;
mod gate;
mod health;
mod held;
mod lead;
mod leadership;
mod link;
mod node;
mod office;
mod page;
mod partitions;
mod reason;
mod supervise;
mod timer;
mod watchdog;

pub use builder::NodeBuilder;
pub use callbacks::Callbacks;
pub use cluster::{Cluster, ClusterSettings, Member, View};
pub use connect::{
    connect, connect_default, connect_default_with, connect_existing, connect_from_env, default_path, schemes,
};
pub use election::{Election, Leader, LeaderChange, LeaderChanges, Role};
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub use error::TransactionError;
pub use error::{
    ConnectError, ElectionError, Ending, LeadError, NotLeader, NotOwner, PartitionsError, StartError,
    TransferError,
};
pub use event::{NodeEvent, Subscription};
pub use gate::{Gate, KnownLeader, Pass};
pub use health::ProbeOutcome;
pub use held::{Held, Holding};
pub use leadership::Leadership;
pub use node::Node;
pub use partitions::{Owner, Partition, PartitionState, Partitions, TaskList, TaskLists};
pub use supervise::{
    Child, ChildHealth, ChildSpec, ChildStatus, Mode, ModeError, Supervise, SuperviseError, Supervisor,
    SupervisorState, SupervisorStatus, supervise,
};
pub use tenure_core::{
    ChildName, Drift, ElectionName, Fence, Fenced, Instant, NameError, Namespace, NodeId, Reason, SessionId,
    SettingsError, TaskListName, Term,
};
pub use tenure_store::{
    Candidate, Cause, EventKind, EventQuery, EventRecord, LabelError, Labels, Lease, Limit, NodeInfo,
    NodeRecord, NodeState, NotSetUp, Options, Problem, Retention, Setup, Store, StoreError, StoreUrl,
    TermEnd, Unhealthy, UrlError, Vacancy,
};

#[cfg(feature = "memory")]
pub use tenure_memory as memory;
#[cfg(feature = "mysql")]
pub use tenure_mysql as mysql;
#[cfg(feature = "postgres")]
pub use tenure_postgres as postgres;
#[cfg(feature = "raft")]
pub use tenure_raft as raft;
#[cfg(feature = "sqlite")]
pub use tenure_sqlite as sqlite;
#[cfg(feature = "zookeeper")]
pub use tenure_zookeeper as zookeeper;
