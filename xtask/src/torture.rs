//! `cargo xtask torture`: real processes under random faults, judged from outside.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::cargo::Cargo;

/// Builds the command and its torturer, then lets it loose; its exit code is ours.
pub fn run(args: &[String]) -> ExitCode {
    let build = Cargo::new("build --release --quiet --package tenure-cli --package tenure-torture --bins");
    if !build.run().is_ok_and(|status| status.success()) {
        eprintln!("xtask: what is needed could not be built: {build}");
        return ExitCode::FAILURE;
    }
    let Some(binaries) = binaries() else {
        eprintln!("xtask: the target directory cannot be found");
        return ExitCode::FAILURE;
    };
    let tortured = Command::new(binaries.join("torture")).args(args).status();
    match tortured {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("xtask: the torture cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Where cargo has put them: this program is itself in a profile's directory beside theirs.
fn binaries() -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    Some(here.parent()?.parent()?.join("release"))
}
