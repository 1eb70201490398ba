//! Nodes that elect among themselves: real processes on machines of a network of their own, killed, stopped
//! and cut off from each other, and judged from outside.
//!
//! Every test ends with the verdict of the checker over the logs of all processes that took part, the dead
//! ones included. It needs root, for the network.

mod crew;

mod chaos;
mod disks;
mod losses;
mod partitions;

use tenure_testkit::patience::HANG;

const ELECTION: &str = "reports";
