//! `cargo xtask flakes`: the tests again and again on a busy machine, and which of them failed at least once.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::cargo::Cargo;
use crate::nextest::{self, FailedTest};
use crate::{setup, suggest, usage_error};

const HELP: &str = "\
Runs the tests several times beside busy processors, and prints every test that failed at least once.

Usage: cargo xtask flakes [--runs N] [--burn K] [-- NEXTEST ARGS]

  --runs N   how often (default 10)
  --burn K   how many threads keep a processor busy meanwhile (default 2)

Example: cargo xtask flakes --runs 20 -- tenure-torture
";

/// Runs all of it; fails if a test did.
pub fn run(args: &[String]) -> ExitCode {
    if matches!(args.first().map(String::as_str), Some("--help" | "-h")) {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(args) {
        Ok(options) => options,
        Err(message) => return usage_error(&message),
    };
    match repeat(&options) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether these are words for it.
#[cfg(test)]
pub fn understands(args: &[String]) -> Result<(), String> {
    Options::parse(args).map(drop)
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    runs: usize,
    burn: usize,
    nextest: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self { runs: 10, burn: 2, nextest: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut number = || {
                let word = args.next().ok_or(format!("`{arg}` needs a number"))?;
                word.parse().map_err(|_| format!("`{arg}` needs a number, not `{word}`"))
            };
            match arg.as_str() {
                "--runs" => options.runs = number()?,
                "--burn" => options.burn = number()?,
                "--" => options.nextest = args.by_ref().cloned().collect(),
                flag if flag.starts_with('-') => {
                    let nearest = suggest::nearest(flag, &["--runs", "--burn", "--help"]);
                    return Err(format!("`flakes` has no flag `{flag}`; did you mean `{nearest}`?"));
                }
                word => return Err(format!("arguments for cargo-nextest go after `--`: flakes -- {word}")),
            }
        }
        Ok(options)
    }
}

/// In which runs each test failed.
type Failures = BTreeMap<FailedTest, Vec<usize>>;

fn repeat(options: &Options) -> Result<Failures, String> {
    setup::install()?;
    // Everything is built beforehand: a run measures the tests alone. Arguments of the run are not taken by `--no-run`.
    for suite in nextest::suites(&[]) {
        let build = suite.with(&["--no-run".to_owned()]);
        println!("$ {build}");
        let built = build.run().map_err(|error| error.to_string())?;
        if !built.success() {
            return Err(format!("`{build}` failed: {built}"));
        }
    }
    let suites = nextest::suites(&options.nextest);
    let logs = nextest::target().join("flakes");
    fs::create_dir_all(&logs).map_err(|error| format!("cannot create {}: {error}", logs.display()))?;
    println!(
        "{} runs beside {} busy threads; what they print is in {}",
        options.runs,
        options.burn,
        logs.display()
    );

    let burners = Burners::start(options.burn);
    let mut failures = Failures::new();
    let mut rows = Vec::new();
    for run in 1..=options.runs {
        let began = SystemTime::now();
        let (mut ran, mut failed) = (0, Vec::new());
        for (number, suite) in suites.iter().enumerate() {
            let log = logs.join(format!("run-{run}-{}.log", number + 1));
            let outcome = nextest::observe(|| quietly(suite, &log))?;
            if !outcome.status.success() && outcome.failed.is_empty() {
                let test =
                    FailedTest { binary: format!("`{suite}`"), name: String::from("no test in particular") };
                failed.push((test, format!("{}: see {}", outcome.status, log.display())));
            }
            ran += outcome.ran;
            failed.extend(outcome.failed);
        }
        let seconds = began.elapsed().unwrap_or_default().as_secs();
        rows.push(format!("| {run} | {ran} | {} | {seconds} |", failed.len()));
        println!("run {run}/{}: {ran} tests, {} failed, {seconds} s", options.runs, failed.len());
        for (test, message) in failed {
            println!("  {} {}\n    {}", test.binary, test.name, message.replace('\n', "\n    "));
            failures.entry(test).or_default().push(run);
        }
    }
    drop(burners);
    print!("{}", table(&rows, &failures, options.runs));
    Ok(failures)
}

fn quietly(suite: &Cargo, log: &std::path::Path) -> std::io::Result<std::process::ExitStatus> {
    let file = File::create(log)?;
    let mut command: Command = suite.command();
    command.stdout(file.try_clone()?).stderr(file).status()
}

/// As a closing note has it.
fn table(rows: &[String], failures: &Failures, runs: usize) -> String {
    let mut table =
        format!("\n| run | tests | failed | seconds |\n|---|---|---|---|\n{}\n\n", rows.join("\n"));
    if failures.is_empty() {
        table.push_str(&format!("no test failed in {runs} runs\n"));
    } else {
        table.push_str("| test | failed in runs |\n|---|---|\n");
    }
    for (test, failed_in) in failures {
        let failed_in: Vec<String> = failed_in.iter().map(usize::to_string).collect();
        table.push_str(&format!("| `{} {}` | {} |\n", test.binary, test.name, failed_in.join(", ")));
    }
    table
}

/// Threads that keep processors busy until this is dropped.
struct Burners {
    done: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Burners {
    fn start(count: usize) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let burn = |_| {
            let done = Arc::clone(&done);
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..count).map(burn).collect();
        Self { done, threads }
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_and_a_filter_are_understood_and_slips_are_answered() {
        let nextest = vec!["deadline".to_owned()];
        assert_eq!(parse("--runs 3 --burn 0 -- deadline"), Ok(Options { runs: 3, burn: 0, nextest }));
        assert_eq!(parse("--run 3").unwrap_err(), "`flakes` has no flag `--run`; did you mean `--runs`?");
        assert_eq!(parse("--runs many").unwrap_err(), "`--runs` needs a number, not `many`");
        assert_eq!(parse("--runs").unwrap_err(), "`--runs` needs a number");
    }

    #[test]
    fn a_test_that_failed_once_is_named_with_the_run() {
        let test = FailedTest { binary: "tenure::it".to_owned(), name: "lead::works".to_owned() };
        let table = table(&["| 1 | 9 | 1 | 5 |".to_owned()], &Failures::from([(test, vec![1])]), 1);
        assert!(table.contains("| `tenure::it lead::works` | 1 |"), "{table}");
        assert!(!table.contains("no test failed"));
    }
}
