//! `tenure run`: a program runs while this node leads, or one for each partition that it owns, and never longer.
//!
//! Three processes: the *supervisor* (this command) stands or works, renews and decides; the *guardian* starts
//! programs, holds the deadline, and ends their trees in time even if the supervisor is stopped, starved or
//! killed; the *program* knows nothing of either. Where there may be several programs, each has a *keeper* for a
//! parent, by which its tree is told from the others.
//!
//! | file | what it is |
//! |---|---|
//! | `supervisor` | the life of the command: what both kinds have in common |
//! | `contest` | one program for an election: stand, serve, stand again |
//! | `failures` | copies of its program that failed one after the other |
//! | `division`, `share`, `waiting` | a program per partition: all of them, one of them, and why there is none |
//! | `guard`, `orders` | the guardian as the supervisor sees it, and what they say to each other |
//! | `guardian`, `ward`, `closing` | the guardian process, a program under guard, and acting for a dead supervisor |
//! | `control`, `lock_watch` | the guardian's end of the socket, and whether a stopped supervisor keeps the store's lock |
//! | `keeper` | the keeper process |
//! | `tree`, `cgroup` | everything that descends from a program, found and ended |
//! | `program`, `restart`, `signals` | what to run, whether again, and what users ask meanwhile |

mod cgroup;
mod closing;
mod contest;
mod control;
mod division;
mod failures;
mod guard;
mod guardian;
mod keeper;
mod lock_watch;
mod orders;
mod program;
mod restart;
mod share;
mod signals;
mod supervisor;
mod tree;
mod waiting;
mod ward;

pub use ward::hide_settings;

use std::process::ExitCode;

use crate::cli::{Global, Restart, Run};
use crate::failure::{Exit, Failure};

/// Becomes a guardian or a keeper, if that is what this process was started for.
pub fn guardian_wanted() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let word = words.next()?;
    if word == keeper::WORD {
        return Some(keeper::keep(words));
    }
    if word != guard::WORD {
        return None;
    }
    let control = words.next()?.to_str()?.parse().ok()?;
    Some(guardian::guard(control))
}

/// Runs a program while elected, or one for each partition.
pub fn run(global: &Global, asked: &Run) -> Result<Exit, Failure> {
    if asked.run.once && asked.run.restart == Some(Restart::Always) {
        return Err(Failure::Usage(String::from(
            "--once runs the program to success once, and --restart always runs it again after that; \
             give --restart on-failure, or leave one of them out",
        )));
    }
    let program = program::find(&asked.program)?;
    // Whoever asks over HTTP must not keep the supervisor from its work.
    let runtime = if asked.serve.listen.is_some() { crate::serving::runtime() } else { crate::runtime() }?;
    let exit = runtime.block_on(supervisor::supervise(global, asked, program));
    // Nothing that a store has left running keeps us.
    runtime.shutdown_background();
    exit
}
