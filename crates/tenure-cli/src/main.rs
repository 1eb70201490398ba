//! The `tenure` command: run any program as the leader, and see who leads.
//!
//! | file | what it is |
//! |---|---|
//! | `cli` | the words of the command line: subcommands and their flags |
//! | `settings` | flag > environment > file > default, and where each value came from |
//! | `store` | the store of a command: its URL and password, connecting, asking with a limit |
//! | `commands/` | one file per subcommand |
//! | `run/` | the supervisor of `tenure run`, and the guardian process beside it |
//! | `output` | tables and JSON, relative times, colours, and pipes that are closed early |
//! | `failure` | what went wrong, and the exit code that says so |

mod cli;
mod commands;
mod failure;
mod output;
mod run;
mod settings;
mod store;

use std::process::ExitCode;

use crate::failure::{Exit, Failure};

fn main() -> ExitCode {
    // The only one in this process, for whatever encrypts. Nobody can have been earlier.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    // The guardian of `tenure run` is this same program, started by itself.
    if let Some(guardian) = run::guardian_wanted() {
        return guardian;
    }
    let loaded = match settings::load(std::env::args_os()) {
        Ok(loaded) => loaded,
        Err(exit) => return exit.say(),
    };
    let json = loaded.cli.global.json;
    log(loaded.cli.global.verbose, json);
    match commands::carry_out(loaded) {
        Ok(Exit(code)) => ExitCode::from(code),
        Err(failure) => failure.say(json),
    }
}

/// What the library has to tell goes to stderr, for who asks to see it.
fn log(verbose: u8, json: bool) {
    use tracing_subscriber::EnvFilter;
    let level = match verbose {
        0 => return,
        1 => "tenure=info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env("TENURE_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // There is no other subscriber yet.
    let _ = if json { builder.json().try_init() } else { builder.try_init() };
}

/// A runtime for a command that talks to a store.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::system)
}
