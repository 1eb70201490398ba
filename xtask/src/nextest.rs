//! cargo-nextest: how the tests are called, and which of them failed.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitStatus;

use crate::cargo::Cargo;

/// The features of `tenure` that bring a store.
pub const STORES: [&str; 6] = ["sqlite", "postgres", "mysql", "zookeeper", "raft", "memory"];

/// Everything but the simulation.
///
/// Cargo unites the features of everything it builds at once, and tenure-sim is tested with the
/// planted bugs of tenure-core. So it is built apart: what the other tests run is
/// what users get.
pub const REAL: &str = "--workspace --exclude tenure-sim";

/// The features with which everything but the simulation is tested and linted.
pub fn features() -> String {
    let stores = STORES.map(|store| format!("tenure/{store}")).join(",");
    format!("{stores},tenure-cli/otel,tenure-cli/server-tests")
}

/// The tests of everything but the simulation, and those of the simulation. `extra` is for both.
pub fn suites(extra: &[String]) -> [Cargo; 2] {
    // With a filter, it is no fault of a suite that none of its tests match.
    let none_found = if extra.is_empty() { "" } else { "--no-tests=warn" };
    [
        format!("nextest run {REAL} --features {} {none_found}", features()),
        format!("nextest run -p tenure-sim --features plants {none_found}"),
    ]
    .map(|line| Cargo::new(&line).with(extra))
}

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedTest {
    /// The test binary, as nextest names it.
    pub binary: String,
    /// The test within it.
    pub name: String,
}

impl FailedTest {
    /// The call of `suite` that runs this test alone.
    pub fn alone(&self, suite: &Cargo) -> Cargo {
        let filter = format!("binary_id(={}) & test(={})", self.binary, self.name);
        suite.clone().with(&["-E".to_owned(), filter])
    }
}

/// What a run of the tests came to.
pub struct Outcome {
    /// Whether cargo-nextest itself says that all is well.
    pub status: ExitStatus,
    /// How many tests were run.
    pub ran: usize,
    /// Those that failed, and the message of each.
    pub failed: Vec<(FailedTest, String)>,
}

/// Runs a suite with `run`, and reads its report.
///
/// # Errors
/// If it cannot be run at all.
pub fn observe(run: impl FnOnce() -> std::io::Result<ExitStatus>) -> Result<Outcome, String> {
    let report = report();
    // Or the report of an earlier run would be read when this one cannot even be built.
    _ = fs::remove_file(&report);
    let status = run().map_err(|error| format!("cannot run cargo-nextest: {error}"))?;
    let report = fs::read_to_string(report).unwrap_or_default();
    Ok(Outcome { status, ran: report.matches("<testcase ").count(), failed: failed(&report) })
}

/// Where `.config/nextest.toml` has the report written.
fn report() -> PathBuf {
    target().join("nextest/default/junit.xml")
}

/// The target directory that cargo uses.
pub fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| crate::repository().join("target"))
}

/// The failures in a JUnit report. What tests print is escaped there, so a tag is a tag.
fn failed(report: &str) -> Vec<(FailedTest, String)> {
    let cases = report.split("<testcase ").skip(1);
    cases
        .filter_map(|case| {
            let failure = case.split_once("<failure ").or_else(|| case.split_once("<error "))?.1;
            let test = FailedTest { binary: attribute(case, "classname")?, name: attribute(case, "name")? };
            Some((test, unescaped(&attribute(failure, "message").unwrap_or_default())))
        })
        .collect()
}

fn unescaped(text: &str) -> String {
    let entities =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#10;", "\n"), ("&amp;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

/// Names of tests and binaries have no character in them that XML would escape.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let tag = tag.split_once('>')?.0;
    let (_, rest) = tag
        .split_once(&format!("{name}=\""))
        .filter(|(before, _)| before.is_empty() || before.ends_with(' '))?;
    Some(rest.split_once('"')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_read_from_the_report_and_can_be_repeated_alone() {
        let report = r#"<testsuites><testsuite name="tenure-cli::it">
            <testcase name="run::ends" classname="tenure-cli::it" time="0.1"><system-out>&lt;failure</system-out></testcase>
            <testcase name="run::stops" classname="tenure-cli::it" time="0.1">
                <failure message="it &apos;panicked&apos; at x.rs:1" type="test failure">and more</failure>
            </testcase></testsuite></testsuites>"#;
        let failed = failed(report);
        let stops = FailedTest { binary: "tenure-cli::it".to_owned(), name: "run::stops".to_owned() };
        assert_eq!(failed, [(stops, "it 'panicked' at x.rs:1".to_owned())]);
        assert_eq!(
            failed[0].0.alone(&Cargo::new("nextest run")).to_string(),
            "cargo nextest run -E 'binary_id(=tenure-cli::it) & test(=run::stops)'"
        );
    }

    #[test]
    fn a_report_that_was_never_written_has_no_failures() {
        assert_eq!(failed(""), []);
    }
}
