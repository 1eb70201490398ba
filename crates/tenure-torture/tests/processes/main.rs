//! Real processes on a real SQLite file: killed, stopped, replaced, and judged from outside.
//!
//! Every test ends with the verdict of the checker over the logs of all processes that took part,
//! the dead ones included. Nothing here waits for luck: tests wait for what candidates say or what
//! the file shows, and bounds on time come from the machine's own floor, measured meanwhile.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]

mod crew;
mod floor;
mod journal;
mod judge;
mod signals;

mod chaos;
mod files;
mod handovers;
mod kills;
mod locks;
mod pauses;
mod restarts;

use std::time::Duration;

/// The election that most tests are about.
const ELECTION: &str = "reports";

/// Longer than anything here takes, on any machine: reached only when something hangs.
const HANG: Duration = Duration::from_secs(30);
