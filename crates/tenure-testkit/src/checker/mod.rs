//! The independent judge of what nodes did: it reads their logs and knows nothing of how Tenure
//! works.
//!
//! Every node logs each of its leaderships as a line of JSON, on one clock (the boot clock of one
//! machine, in nanoseconds); a fenced register logs every write that it was asked for:
//!
//! ```text
//! {"election":"reports","node":"worker-1","pid":4711,"term":7,"from":1000,"until":2000}
//! {"election":"reports","node":"worker-1","pid":4711,"term":7,"accepted":true}
//! ```
//!
//! [`check_leaderships`] and [`check_writes`] say what went wrong; [`gaps`] how long nobody led.

mod gaps;
mod leaderships;
mod log;
mod writes;

pub use gaps::{Gap, gaps};
pub use leaderships::{LeadershipViolation, check_leaderships};
pub use log::{Leadership, LogError, Write, parse_leaderships, parse_writes};
pub use writes::{StaleWrite, check_writes};
