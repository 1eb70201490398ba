//! `cargo xtask test`: every check and every test, in the order in which they are cheap.

use std::env;
use std::process::ExitCode;

use crate::cargo::Cargo;
use crate::progress::Progress;
use crate::{setup, sim, suggest, tidy, usage_error};

const HELP: &str = "\
Every check and every test; installs what is missing, and says so.

Usage: cargo xtask test [--quick] [-- NEXTEST ARGS]

  --quick   skips the long simulation and the documentation

Example: cargo xtask test --quick -- --no-fail-fast
";

/// The features of `tenure` that bring a store. Each must build without the others.
const STORES: [&str; 6] = ["sqlite", "postgres", "mysql", "zookeeper", "raft", "memory"];

/// Enough for about a minute of simulation on an ordinary machine.
const SEEDS: &str = "30000";

/// Runs everything; stops at the first step that fails.
pub fn run(args: &[String]) -> ExitCode {
    if matches!(args.first().map(String::as_str), Some("--help" | "-h")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(message) => return usage_error(&message),
    };
    if let Err(error) = env::set_current_dir(crate::repository()) {
        eprintln!("xtask: cannot go to the repository's root: {error}");
        return ExitCode::FAILURE;
    }
    let steps = steps(&options);
    let mut progress = Progress::begin(steps.len());
    let failed = steps.iter().find_map(|step| {
        let failure = progress.step(&step.name, || step.work.run()).err()?;
        Some((step, failure))
    });
    println!("\n{}", progress.summary());
    let Some((step, failure)) = failed else {
        println!("everything passed");
        return ExitCode::SUCCESS;
    };
    eprintln!("xtask: the step `{}` failed: {failure}", step.name);
    eprintln!("xtask: to run it alone: {}", step.work.by_hand());
    ExitCode::FAILURE
}

/// Whether these are words for it.
#[cfg(test)]
pub fn understands(args: &[String]) -> Result<(), String> {
    Options::parse(args).map(drop)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    quick: bool,
    nextest: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => options.quick = true,
                "--" => options.nextest = args.by_ref().cloned().collect(),
                flag if flag.starts_with('-') => {
                    let nearest = suggest::nearest(flag, &["--quick", "--help"]);
                    return Err(format!("`test` has no flag `{flag}`; did you mean `{nearest}`?"));
                }
                word => return Err(format!("arguments for cargo-nextest go after `--`: test -- {word}")),
            }
        }
        Ok(options)
    }
}

struct Step {
    name: String,
    work: Work,
}

impl Step {
    fn new(name: &str, work: Work) -> Self {
        Self { name: name.to_owned(), work }
    }

    fn cargo(name: &str, line: &str) -> Self {
        Self::new(name, Work::Cargo(Cargo::new(line)))
    }
}

enum Work {
    Setup,
    Tidy,
    Cargo(Cargo),
}

impl Work {
    fn run(&self) -> Result<(), String> {
        match self {
            Self::Setup => setup::install(),
            Self::Tidy => tidy::check(),
            Self::Cargo(call) => {
                println!("$ {call}");
                match call.run() {
                    Ok(status) if status.success() => Ok(()),
                    Ok(status) => Err(status.to_string()),
                    Err(error) => Err(error.to_string()),
                }
            }
        }
    }

    /// What a person types to repeat this step alone.
    fn by_hand(&self) -> String {
        match self {
            Self::Setup => "cargo xtask setup".to_owned(),
            Self::Tidy => "cargo xtask tidy".to_owned(),
            Self::Cargo(call) => call.to_string(),
        }
    }
}

/// All steps, in order.
///
/// Cargo unites the features of everything it builds at once, and tenure-sim switches on the
/// planted bugs of tenure-core. So tenure-sim is always built apart: what the other tests run is
/// what users get.
fn steps(options: &Options) -> Vec<Step> {
    const REAL: &str = "--workspace --exclude tenure-sim";
    let stores = STORES.map(|store| format!("tenure/{store}")).join(",");
    // With a filter, it is no fault of the simulation that none of its tests match.
    let none_found = if options.nextest.is_empty() { "" } else { "--no-tests=warn" };

    let tests = Cargo::new(&format!("nextest run {REAL} --features {stores} {none_found}"));
    let sim_tests = Cargo::new(&format!("nextest run -p tenure-sim {none_found}"));
    let docs = Cargo::new("doc --workspace --no-deps").environment("RUSTDOCFLAGS", "-D warnings");

    let mut steps = vec![
        Step::new("setup", Work::Setup),
        Step::cargo("format", "fmt --all --check"),
        Step::new("tidy", Work::Tidy),
        // Not `advisories`: their list is kept where a machine without the open internet cannot read it.
        Step::cargo("dependencies", "deny --all-features check --hide-inclusion-graph bans licenses sources"),
        Step::cargo(
            "lint",
            &format!("clippy {REAL} --all-targets --features {stores},tenure-cli/otel -- -D warnings"),
        ),
        Step::cargo("lint of the sim", "clippy -p tenure-sim --all-targets -- -D warnings"),
        Step::new("tests", Work::Cargo(tests.with(&options.nextest))),
        Step::new("tests of the sim", Work::Cargo(sim_tests.with(&options.nextest))),
        Step::cargo("examples in the docs", &format!("test {REAL} --doc --features {stores}")),
        Step::cargo("examples of the sim", "test -p tenure-sim --doc"),
        Step::cargo("OpenTelemetry", "nextest run -p tenure-cli --features otel --test otel"),
        Step::cargo("no store", "check -p tenure --no-default-features"),
    ];
    steps.extend(STORES.map(|store| {
        let call = format!("check -p tenure --no-default-features --features {store}");
        Step::cargo(&format!("only {store}"), &call)
    }));
    if !options.quick {
        steps.push(Step::new("documentation", Work::Cargo(docs)));
        let seeds = ["--seeds", SEEDS].map(str::to_owned);
        steps.push(Step::new("simulation", Work::Cargo(sim::simulation(&seeds))));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn calls(options: &Options) -> Vec<Cargo> {
        let cargo = |step: Step| if let Work::Cargo(call) = step.work { Some(call) } else { None };
        steps(options).into_iter().filter_map(cargo).collect()
    }

    #[test]
    fn planted_bugs_are_never_built_into_what_the_real_tests_run() {
        for call in calls(&Options::default()) {
            let builds_all = call.has("--workspace") && !call.has("doc");
            assert!(!builds_all || call.has("tenure-sim"), "`{call}` does not exclude tenure-sim");
            assert!(!call.has("--all-features") || call.has("deny"), "`{call}` enables `plants`");
        }
    }

    #[test]
    fn setup_format_and_tidy_come_before_anything_is_compiled() {
        let names: Vec<String> = steps(&Options::default()).into_iter().map(|step| step.name).collect();
        assert_eq!(names[..5], ["setup", "format", "tidy", "dependencies", "lint"]);
        assert_eq!(names.last().map(String::as_str), Some("simulation"));
    }

    #[test]
    fn quick_skips_the_documentation_and_the_simulation_only() {
        let all: Vec<Cargo> = calls(&Options::default());
        let quick = calls(&Options { quick: true, ..Options::default() });
        assert_eq!(quick[..], all[..all.len() - 2]);
    }

    #[test]
    fn words_after_two_dashes_reach_both_runs_of_nextest() {
        let options = parse("--quick -- --no-fail-fast deadline").unwrap();
        assert!(options.quick);
        assert_eq!(options.nextest, ["--no-fail-fast", "deadline"]);
        assert_eq!(calls(&options).iter().filter(|call| call.has("deadline")).count(), 2);
    }

    #[test]
    fn a_mistyped_flag_is_answered_with_the_right_one() {
        assert_eq!(parse("--quik").unwrap_err(), "`test` has no flag `--quik`; did you mean `--quick`?");
        assert!(parse("deadline").unwrap_err().contains("test -- deadline"));
    }
}
