//! `cargo xtask test`: every check and every test, in the order in which they are cheap.

use std::env;
use std::process::ExitCode;

use crate::cargo::Cargo;
use crate::nextest::{self, REAL, STORES};
use crate::progress::Progress;
use crate::{green, setup, sim, suggest, tidy, usage_error};

const HELP: &str = "\
Every check and every test; installs what is missing, and says so.

Usage: cargo xtask test [--quick] [-- NEXTEST ARGS]

  --quick   skips the long simulation and the documentation

A step that fails does not keep the others from running. The summary names every failure with the command that
repeats it. A complete run in which nothing fails leaves its commit in target/green (see `cargo xtask green`).

Example: cargo xtask test --quick -- deadline
";

/// Half a minute of simulation on two cores. `cargo xtask sim` runs as many as are asked for.
const SEEDS: &str = "10000";

/// Runs everything, also after a step that fails.
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
    let commit = green::commit();
    if options.is_complete() {
        green::forget();
    }
    let steps = steps(&options);
    let mut progress = Progress::begin(steps.len());
    let failures = run_all(&steps, &mut progress);
    println!("\n{}", progress.summary());
    if !failures.is_empty() {
        eprintln!("xtask: {} failed; each with the command that repeats it:", failures.len());
        for Failure { what, again } in &failures {
            eprintln!("  {what}\n    {again}");
        }
        return ExitCode::FAILURE;
    }
    println!("everything passed");
    // What has changed meanwhile was not tested.
    if let Some(commit) =
        commit.filter(|tested| options.is_complete() && green::commit().as_ref() == Some(tested))
        && let Err(message) = green::remember(&commit)
    {
        eprintln!("xtask: {message}");
    }
    ExitCode::SUCCESS
}

/// Runs every step but those that cannot do without one that failed.
fn run_all(steps: &[Step], progress: &mut Progress) -> Vec<Failure> {
    let mut failures = Vec::new();
    let mut failed_steps: Vec<&str> = Vec::new();
    for step in steps {
        if step.needs.is_some_and(|needed| failed_steps.contains(&needed)) {
            progress.skip(&step.name);
            continue;
        }
        if let Err(failed) = progress.step(&step.name, || step.work.run()) {
            failed_steps.push(&step.name);
            failures.extend(
                failed
                    .into_iter()
                    .map(|Failure { what, again }| Failure { what: format!("{}: {what}", step.name), again }),
            );
        }
    }
    failures
}

/// Something that failed, and what a person types to see it again.
struct Failure {
    what: String,
    again: String,
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
    /// Whether this is all there is: only then does success say something about the commit.
    fn is_complete(&self) -> bool {
        *self == Self::default()
    }

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
    /// The step without which it cannot succeed.
    needs: Option<&'static str>,
}

impl Step {
    fn new(name: &str, work: Work) -> Self {
        Self { name: name.to_owned(), work, needs: None }
    }

    fn cargo(name: &str, line: &str) -> Self {
        Self::new(name, Work::Cargo(Cargo::new(line)))
    }

    fn needs(self, step: &'static str) -> Self {
        Self { needs: Some(step), ..self }
    }
}

enum Work {
    Setup,
    Tidy,
    Cargo(Cargo),
    Tests(Cargo),
}

impl Work {
    fn run(&self) -> Result<(), Vec<Failure>> {
        let failed = |what| vec![Failure { what, again: self.by_hand() }];
        match self {
            Self::Setup => setup::install().map_err(failed),
            Self::Tidy => tidy::check().map_err(failed),
            Self::Cargo(call) => {
                println!("$ {call}");
                match call.run() {
                    Ok(status) if status.success() => Ok(()),
                    Ok(status) => Err(failed(status.to_string())),
                    Err(error) => Err(failed(error.to_string())),
                }
            }
            Self::Tests(suite) => {
                println!("$ {suite}");
                let outcome = nextest::observe(|| suite.run()).map_err(failed)?;
                match outcome.failed.as_slice() {
                    [] if outcome.status.success() => Ok(()),
                    [] => Err(failed(outcome.status.to_string())),
                    tests => Err(tests
                        .iter()
                        .map(|(test, _)| Failure {
                            what: format!("{} {}", test.binary, test.name),
                            again: test.alone(suite).to_string(),
                        })
                        .collect()),
                }
            }
        }
    }

    /// What a person types to repeat this step alone.
    fn by_hand(&self) -> String {
        match self {
            Self::Setup => "cargo xtask setup".to_owned(),
            Self::Tidy => "cargo xtask tidy".to_owned(),
            Self::Cargo(call) | Self::Tests(call) => call.to_string(),
        }
    }
}

/// All steps, in order.
fn steps(options: &Options) -> Vec<Step> {
    let features = nextest::features();
    let [tests, sim_tests] = nextest::suites(&options.nextest);
    let docs = Cargo::new("doc --workspace --no-deps").environment("RUSTDOCFLAGS", "-D warnings");

    let mut steps = vec![
        Step::new("setup", Work::Setup),
        Step::cargo("format", "fmt --all --check"),
        Step::new("tidy", Work::Tidy),
        // Not `advisories`: their list is kept where a machine without the open internet cannot read it.
        Step::cargo("dependencies", "deny --all-features check --hide-inclusion-graph bans licenses sources")
            .needs("setup"),
        Step::cargo("lint", &format!("clippy {REAL} --all-targets --features {features} -- -D warnings")),
        Step::cargo("lint of the sim", "clippy -p tenure-sim --features plants --all-targets -- -D warnings"),
        Step::new("tests", Work::Tests(tests)).needs("setup"),
        Step::new("tests of the sim", Work::Tests(sim_tests)).needs("setup"),
        Step::cargo(
            "examples in the docs",
            &format!("test {REAL} --doc --no-fail-fast --features {features}"),
        ),
        Step::cargo("examples of the sim", "test -p tenure-sim --features plants --doc"),
        Step::cargo("no store", "check -p tenure --no-default-features"),
    ];
    steps.push(Step::cargo("command with SQLite only", "check -p tenure-cli --no-default-features"));
    // Each store must build without the others.
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
        let cargo = |step: Step| match step.work {
            Work::Cargo(call) | Work::Tests(call) => Some(call),
            Work::Setup | Work::Tidy => None,
        };
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
        let options = parse("--quick -- --retries=0 deadline").unwrap();
        assert!(options.quick && !options.is_complete());
        assert_eq!(options.nextest, ["--retries=0", "deadline"]);
        assert_eq!(calls(&options).iter().filter(|call| call.has("deadline")).count(), 2);
    }

    #[test]
    fn a_mistyped_flag_is_answered_with_the_right_one() {
        assert_eq!(parse("--quik").unwrap_err(), "`test` has no flag `--quik`; did you mean `--quick`?");
        assert!(parse("deadline").unwrap_err().contains("test -- deadline"));
    }

    #[test]
    fn a_step_that_fails_hides_none_of_the_others() {
        let fails = |name| Step::cargo(name, "no-such-subcommand-of-cargo");
        let needs = |name, needed| Step::cargo(name, "--version").needs(needed);
        let steps = [fails("first"), fails("second"), needs("third", "second"), needs("fourth", "third")];
        let mut progress = Progress::begin(steps.len());
        let failures: Vec<String> =
            run_all(&steps, &mut progress).into_iter().map(|failure| failure.again).collect();
        assert_eq!(failures, ["cargo no-such-subcommand-of-cargo"; 2]);
        let verdicts: Vec<String> = progress.summary().lines().skip(1).map(str::to_owned).collect();
        for (line, verdict) in verdicts.iter().zip(["FAILED", "FAILED", "not run", "ok"]) {
            assert!(line.ends_with(verdict), "{line}");
        }
    }
}
