//! Real processes on a real SQLite file: killed, stopped, replaced, and judged from outside.
//!
//! Every test ends with the verdict of the checker over the logs of all processes that took part,
//! the dead ones included. Nothing here waits for luck: tests wait for what candidates say or what
//! the file shows, and no test says how long something takes at most.

mod crew;
mod floor;
mod judge;

mod chaos;
mod files;
mod handovers;
mod kills;
mod locks;
mod pauses;
mod restarts;

use tenure_testkit::patience::HANG;

/// The election that most tests are about.
const ELECTION: &str = "reports";
