//! `tenure run`: a program runs while this node leads, and never longer.
//!
//! Three processes: the *supervisor* (this command) stands, renews and decides; the *guardian* starts
//! the program, holds the deadline, and ends the program's tree in time even if the supervisor is
//! stopped, starved or killed; the *program* knows nothing of either.
//!
//! | file | what it is |
//! |---|---|
//! | `supervisor` | the life of the command: stand, serve, stand again |
//! | `guard`, `orders` | the guardian as the supervisor sees it, and what they say to each other |
//! | `guardian` | the guardian process |
//! | `tree`, `cgroup` | everything that descends from the program, found and ended |
//! | `program`, `restart`, `signals` | what to run, whether again, and what users ask meanwhile |
//! | `voice`, `service` | what is said to people and to the service manager |

mod cgroup;
mod guard;
mod guardian;
mod orders;
mod program;
mod restart;
mod service;
mod signals;
mod supervisor;
mod tree;
mod voice;

use std::process::ExitCode;

use crate::cli::{Global, Run};
use crate::failure::{Exit, Failure};

/// Becomes a guardian, if that is what this process was started for.
pub fn guardian_wanted() -> Option<ExitCode> {
    let mut words = std::env::args().skip(1);
    if words.next()? != guard::WORD {
        return None;
    }
    let control = words.next()?.parse().ok()?;
    Some(guardian::guard(control))
}

/// Runs a program while elected.
pub fn run(global: &Global, asked: &Run) -> Result<Exit, Failure> {
    let program = program::find(&asked.program)?;
    let runtime = crate::runtime()?;
    let exit = runtime.block_on(supervisor::supervise(global, asked, program));
    // Nothing that a store has left running keeps us.
    runtime.shutdown_background();
    exit
}
