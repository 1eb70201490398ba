//! `cargo xtask green`: whether the commit at HEAD has passed a complete `cargo xtask test`.
//!
//! Such a run leaves the hash in `target/green`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The chore: says it, and answers with 1 if it has not.
pub fn run() -> ExitCode {
    let green = fs::read_to_string(file()).unwrap_or_default();
    let (message, is_green) = verdict(green.trim(), commit().as_deref());
    println!("{message}");
    if is_green { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Forgets the last green commit: a run that begins now decides anew.
pub fn forget() {
    _ = fs::remove_file(file());
}

/// Remembers that everything passed on `commit`.
///
/// # Errors
/// If the file cannot be written.
pub fn remember(commit: &str) -> Result<(), String> {
    fs::write(file(), format!("{commit}\n"))
        .map_err(|error| format!("cannot write {}: {error}", file().display()))
}

/// The commit at HEAD, if the tree is exactly that commit.
pub fn commit() -> Option<String> {
    let changes = git(&["status", "--porcelain"])?;
    changes.is_empty().then(|| git(&["rev-parse", "HEAD"]))?
}

/// In the repository whatever the target directory is: it says something of this checkout.
fn file() -> PathBuf {
    crate::repository().join("target/green")
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(crate::repository()).args(args).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn verdict(green: &str, commit: Option<&str>) -> (String, bool) {
    match (green, commit) {
        (_, None) => ("not green: the tree has uncommitted changes".to_owned(), false),
        ("", Some(_)) => {
            ("not green: no complete `cargo xtask test` has passed on a clean tree here".to_owned(), false)
        }
        (green, Some(commit)) if green == commit => {
            (format!("green: `cargo xtask test` passed on {commit}, which is HEAD"), true)
        }
        (green, Some(commit)) => {
            (format!("not green: `cargo xtask test` passed on {green}, HEAD is {commit}"), false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_commit_that_passed_is_green() {
        assert!(verdict("abc", Some("abc")).1);
        assert!(!verdict("abc", Some("abd")).1);
        assert!(!verdict("", Some("abc")).1);
        assert!(!verdict("abc", None).1, "what is not committed was not tested");
    }
}
