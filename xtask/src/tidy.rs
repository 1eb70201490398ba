//! `cargo xtask tidy`: the rules of this repository that no compiler checks.
//!
//! One file per rule. A rule looks at the repository and adds what it found to the report; each
//! finding names the place and says what to do.

mod code;
mod crates;
mod documents;
mod length;
mod places;
mod plants;
mod pure_core;
mod repository;
mod words;

use std::process::ExitCode;

use repository::Repository;

/// What the rules found.
#[derive(Debug, Default)]
struct Report {
    problems: Vec<String>,
    warnings: Vec<String>,
}

impl Report {
    /// A whole file breaks a rule.
    fn file(&mut self, path: &str, what: &str) {
        self.problems.push(format!("{path}: {what}"));
    }

    /// A line, counted from one, breaks a rule.
    fn line(&mut self, path: &str, line: usize, what: &str) {
        self.problems.push(format!("{path}:{line}: {what}"));
    }

    /// A file comes close to breaking a rule.
    fn warn(&mut self, path: &str, what: &str) {
        self.warnings.push(format!("{path}: {what}"));
    }
}

/// The chore `cargo xtask tidy`.
pub fn run() -> ExitCode {
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Applies every rule and prints what it finds.
pub fn check() -> Result<(), String> {
    let repository = Repository::load(&crate::repository())?;
    let mut report = Report::default();
    pure_core::check(&repository, &mut report);
    plants::check(&repository, &mut report);
    words::check(&repository, &mut report);
    length::check(&repository, &mut report);
    places::check(&repository, &mut report);
    crates::check(&repository, &mut report);
    documents::check(&repository, &mut report);

    for warning in &report.warnings {
        println!("warning: {warning}");
    }
    for problem in &report.problems {
        eprintln!("error: {problem}");
    }
    let files = repository.files.len();
    match report.problems.len() {
        0 => {
            println!("tidy: {files} files keep the rules");
            Ok(())
        }
        count => Err(format!("tidy: {count} to put right in {files} files")),
    }
}
