//! `tenure completions`: what a shell needs to know of the command line.

use std::io::Write;

use clap::CommandFactory;

use crate::cli::{Cli, Completions};
use crate::failure::{Exit, Failure};

pub fn completions(asked: &Completions) -> Result<Exit, Failure> {
    // Into memory first: the generator panics when nobody reads.
    let mut script = Vec::new();
    clap_complete::generate(asked.shell, &mut Cli::command(), "tenure", &mut script);
    let mut out = std::io::stdout().lock();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Exit::DONE)
}
