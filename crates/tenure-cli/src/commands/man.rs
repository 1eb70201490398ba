//! `tenure man`: the manual pages, made from the same words as the help.

use std::io::Write;

use clap::CommandFactory;

use crate::cli::{Cli, Man};
use crate::failure::{Exit, Failure};
use crate::output;

pub fn man(asked: &Man) -> Result<Exit, Failure> {
    let Some(directory) = &asked.dir else { return print() };
    let shown = directory.display();
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .map_err(|error| Failure::System(format!("the pages cannot be written to `{shown}`: {error}")))?;
    output::complain(&format!("the pages are in {shown}; read them with: man -l {shown}/tenure.1"));
    Ok(Exit::DONE)
}

fn print() -> Result<Exit, Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    let mut out = std::io::stdout().lock();
    out.write_all(&page)?;
    out.flush()?;
    Ok(Exit::DONE)
}
