//! Tenure's rules as pure state machines: no clock, no randomness of their own, no I/O, no async.
//!
//! A [`Machine`] is one node: its session and all of its elections. Time is an argument of every
//! input; what the machine wants (requests to the store, events for the user, a wake-up) is polled.
//! The simulation drives the same machine as the real driver does, so what is proven there is what
//! runs here.
//!
//! The clock model is that of `docs/safety.md`: clocks may differ by any offset, and in *rate* by
//! at most [`Drift`]. Wall clocks decide nothing.

mod candidate;
mod capabilities;
mod dice;
mod election;
mod event;
mod failback;
mod health;
mod leader;
mod machine;
mod members;
mod name;
mod observer;
pub mod partitions;
mod plants;
mod record;
mod request;
mod session;
mod settings;
mod silence;
mod supervision;
mod term;
mod time;
mod timers;
mod wall;

pub use capabilities::{Capabilities, ExpiryJudge, News, Sessions};
pub use dice::Dice;
pub use event::{Event, Reason};
pub use failback::{Failback, FailbackAttempt, FailbackRequest};
pub use machine::{Machine, Refusal};
pub use members::{Change, Members, NodeState, Sighting};
pub use name::{ChildName, ElectionName, MAX_NAME_BYTES, NameError, Namespace, NodeId, TaskListName};
pub use plants::{Plant, Planted};
pub use record::{
    Age, Holder, MOST_TOLD, Opening, Petition, Pulse, Record, Renewal, Renewed, Sequence, SessionId, Stamp,
    Standing, StoreIdentity,
};
pub use request::{Answer, ElectionKey, Failure, Request, RequestId, Verb};
pub use settings::{MAX_TTL, MIN_TTL, Settings, SettingsError};
pub use supervision::{ChildRules, ChildState, Order, Pace, Supervision, SupervisionRules};
pub use term::{Fence, Fenced, Term};
pub use time::{Drift, Instant};
