//! A candidate of etcd's own election, in Go.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{built, source};
use crate::server::succeed;

/// The program of a candidate, compiled from the sources that Debian has of etcd. It is compiled once.
///
/// # Panics
/// If Go or those sources are not installed.
#[must_use]
pub fn program() -> PathBuf {
    let program = built("etcd_candidate");
    let mut go = Command::new("go");
    go.env("GO111MODULE", "off").env("GOPATH", "/usr/share/gocode").env("GOCACHE", built("go"));
    succeed(go.args(["build", "-ldflags", "-s -w", "-o"]).arg(&program).arg(source("etcd_candidate.go")));
    program
}

/// The command that starts a candidate. Its lease is counted in whole seconds. It ends when its stdin is closed.
#[must_use]
pub fn candidate(program: &PathBuf, endpoint: &str, id: &str, ttl: Duration) -> Command {
    let mut command = Command::new(program);
    command.args([endpoint, "bench", id, &ttl.as_secs().to_string()]);
    command
}
