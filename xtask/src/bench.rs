//! `cargo xtask bench`: every bench of the test kit.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::cargo::Cargo;

/// Runs the benches with `args`; their exit code is ours.
pub fn run(args: &[String]) -> ExitCode {
    let benches = benches(&crate::repository().join("crates/tenure-testkit/benches"));
    if benches.is_empty() {
        eprintln!("xtask: there is nothing to measure: crates/tenure-testkit/benches holds no bench");
        return ExitCode::FAILURE;
    }
    measurement(&benches, args).become_the_chore()
}

/// Names each bench, because a plain `cargo bench` would also hand the arguments to the crate's
/// unit tests, which do not know them.
fn measurement(benches: &[String], args: &[String]) -> Cargo {
    let named: Vec<String> = benches.iter().flat_map(|name| ["--bench".to_owned(), name.clone()]).collect();
    Cargo::new("bench --package tenure-testkit").with(&named).with(&["--".to_owned()]).with(args)
}

/// What cargo takes for a bench: `NAME.rs`, or `NAME/main.rs`.
fn benches(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_reach_the_named_benches_and_nothing_else() {
        let call = measurement(&["cost".to_owned(), "failover".to_owned()], &["renew".to_owned()]);
        assert_eq!(
            call.to_string(),
            "cargo bench --package tenure-testkit --bench cost --bench failover -- renew"
        );
    }
}
