//! The `tenure` command: run any program as the leader, and see who leads.
//!
//! | file | what it is |
//! |---|---|
//! | `cli` | the words of the command line: subcommands and their flags |
//! | `settings` | flag > environment > file > default, and where each value came from |
//! | `origins` | what to call a setting that cannot work: a flag, a variable, a line of a file |
//! | `upstream` | the program beside a node: which requests it gets |
//! | `store` | the store of a command: its URL and password, connecting, asking with a limit |
//! | `credentials` | user and password in a store URL: hidden from people, unambiguous for stores |
//! | `commands/` | one file per subcommand |
//! | `registration`, `serving` | from settings to a registered node, and to its HTTP API |
//! | `health` | the health check of a node: a command or a URL |
//! | `outage` | what people are told while the store is away |
//! | `telemetry` | what the library logs: to stderr, and to an OpenTelemetry collector |
//! | `voice`, `service` | what long-lived commands say to people and to the service manager |
//! | `screen` | a terminal that is painted again and again: `demo` and `top` |
//! | `severed` | a store that `demo` can cut off |
//! | `run/` | the supervisor of `tenure run`, and the guardian process beside it |
//! | `output` | tables and JSON, relative times, colours, and pipes that are closed early |
//! | `failure` | what went wrong, and the exit code that says so |

mod cli;
mod commands;
mod credentials;
mod failure;
mod health;
mod origins;
mod outage;
mod output;
mod registration;
mod run;
mod screen;
mod service;
mod serving;
mod settings;
mod severed;
mod store;
mod telemetry;
mod upstream;
mod voice;

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
    settings::warn_of_unknown_variables(json);
    let telemetry = telemetry::begin(loaded.cli.global.verbose, json);
    let exit = match commands::carry_out(loaded) {
        Ok(Exit(code)) => ExitCode::from(code),
        Err(failure) => failure.say(json),
    };
    telemetry.end();
    exit
}

/// A runtime for a command that talks to a store.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::system)
}
