//! The contract between Tenure and a store.
//!
//! A store speaks Tenure's verbs and returns outcomes; it owns no timing rule and takes no
//! decision. What stores do differently is data ([`Capabilities`]), not another trait.
//! [`Store`] states the promises; the conformance suite of `tenure-testkit` holds every store to
//! them, one file per promise.

mod cause;
mod changes;
pub mod clock;
mod contract;
pub mod environment;
mod error;
mod fenced;
mod health;
mod history;
mod labels;
mod ledger;
mod listeners;
mod moves;
mod registry;
mod url;
mod vacancy;

pub use cause::{Cause, Silence};
pub use changes::Changes;
pub use contract::{
    Candidate, Claim, Declaration, Deletion, Finding, Hint, Hints, Lease, NodeInfo, NodeRecord, Open,
    Pending, Petitioned, Reply, Resign, Store, Told,
};
pub use error::{NotSetUp, StoreError};
pub use fenced::TransactionError;
pub use health::{HealthReport, Problem, Unhealthy};
pub use history::{EventKind, EventQuery, EventRecord, Limit, Retention};
pub use labels::{LabelError, Labels};
pub use ledger::{
    Arranged, Arrangement, Enlistment, LEDGER_PAGE, Leaf, Ledger, LedgerQuery, Listed, Publication,
    Published, Release, Survey, WorkerRecord,
};
pub use listeners::Listeners;
pub use moves::Moves;
pub use registry::newest;
pub use tenure_core::{Capabilities, ExpiryJudge, News, NodeState, Sessions};
pub use url::{Options, Setup, StoreUrl, UrlError};
pub use vacancy::{TermEnd, Vacancy};
