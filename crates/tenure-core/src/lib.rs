//! Tenure's rules as pure state machines: no clock, no randomness of their own, no I/O, no async.

mod capabilities;
mod name;
mod record;
mod term;
mod time;

pub use capabilities::{Capabilities, ExpiryJudge, News, Succession};
pub use name::{ElectionName, MAX_NAME_BYTES, NameError, Namespace, NodeId};
pub use record::{
    Age, Holder, Opening, Pulse, Record, Renewal, Sequence, SessionId, Stamp, Standing, StoreIdentity,
};
pub use term::{Fence, Fenced, Term};
pub use time::{Drift, Instant};
