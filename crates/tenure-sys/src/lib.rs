//! All the `unsafe` of the workspace, in one place to be reviewed: the page of memory that every guard
//! reads, the registration of a timer, a word to the allocator, a listening socket's filter, and what a child process does before it becomes its program.
#![allow(unsafe_code, reason = "this crate is the one place for it")]

mod door;
mod memory;
mod page;
mod process;
mod timer;

pub use door::let_nobody_in;
pub use memory::give_back;
pub use page::{WipedOnFork, Words};
pub use process::{Refusal, adopt, bind_to_us, spawn_inside};
pub use timer::readable;
