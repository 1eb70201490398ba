//! Partitions: how an elected coordinator divides work among nodes.
//!
//! A *task list* is cut into numbered *partitions*. The coordinator *plans* who shall own which
//! ([`plan`](plan::plan), a pure function), and carries the plan out through the *ledger* that the store keeps:
//! the [`Coordinator`] assigns and revokes, each [`Worker`] starts, stops and acknowledges. Both are state
//! machines in the manner of [`Machine`](crate::Machine), and stand beside it: it has the session that
//! everything hangs from.

mod asking;
mod assignment;
mod book;
mod coordinator;
mod ledger;
mod member;
mod pace;
pub mod plan;
mod review;
mod roster;
mod tasks;
mod worker;

pub use asking::Ask;
pub use assignment::{Assignment, Move, Partition};
pub use coordinator::{Coordinator, CoordinatorEvent, Declared};
pub use ledger::{BATCH, Change, Demand, Entry, Holding, Page, Revision, Sighting, Told};
pub use member::{Labels, Member, Readiness};
pub use pace::{Drain, Pace};
pub use plan::{Plan, plan};
pub use tasks::TaskList;
pub use worker::{Worker, WorkerEvent};
