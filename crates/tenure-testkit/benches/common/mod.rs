//! What the benches share: their arguments, their places, their floors, and how they tell results.
#![allow(dead_code, reason = "every bench uses a part of it")]

pub mod candidate;
pub mod cast;
pub mod database;
pub mod double;
pub mod floor;
pub mod place;
pub mod process;
pub mod samples;
pub mod stage;
pub mod summary;
pub mod usage;

use std::path::PathBuf;
use std::process::ExitCode;

/// Whatever goes wrong ends the bench with a message.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The first argument of a process that a bench has started from its own binary.
pub const PART: &str = "part";

/// One bench under way.
pub struct Bench {
    /// Fewer rounds: to see that it works, not to quote.
    pub quick: bool,
    summary: Option<PathBuf>,
}

/// The `main` of every bench. `part` is what the processes do that it starts.
pub fn run(
    name: &str,
    measure: impl FnOnce(&Bench) -> Outcome<()>,
    part: impl FnOnce(&[&str]) -> Outcome<()>,
) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [PART, rest @ ..] => part(rest),
        _ => match parse(name, &words) {
            Ok(Some(bench)) => {
                println!(
                    "\n== {name}{} ==",
                    if bench.quick { ", quick: too few rounds to quote" } else { "" }
                );
                measure(&bench)
            }
            Ok(None) => Ok(()),
            Err(problem) => {
                eprintln!("{name}: {problem}; usage: cargo xtask bench [--quick] [NAME…]");
                return ExitCode::from(2);
            }
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// `None` if this bench was not asked for.
fn parse(name: &str, words: &[&str]) -> Result<Option<Bench>, String> {
    let mut bench = Bench { quick: false, summary: None };
    let mut filters = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => bench.quick = true,
            "--summary" => bench.summary = words.next().map(PathBuf::from),
            "--bench" => {} // cargo adds it
            flag if flag.starts_with('-') => return Err(format!("there is no flag `{flag}`")),
            filter => filters.push(filter),
        }
    }
    let asked = filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
    Ok(asked.then_some(bench))
}

/// For a bench that starts no processes.
pub fn no_part(_: &[&str]) -> Outcome<()> {
    Err("this bench is one process".into())
}
