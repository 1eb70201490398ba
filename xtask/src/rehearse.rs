//! `cargo xtask rehearse`: the `cargo` lines of the documents that take too long for `cargo xtask test`, each with
//! its shortest extent. What is only looked at there (chores, flags, examples that exist) is run here.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::cargo::Cargo;
use crate::progress::Progress;
use crate::{documented, usage_error};

/// Long enough for a fault or two on every store.
const TORTURE: &str = "--seconds 10";

const HELP: &str = "\
Runs the `cargo` lines of the documents that are too long for `cargo xtask test`, each as shortly as it can.

Usage: cargo xtask rehearse [WORD]

  WORD   only those with this word in them

Example: cargo xtask rehearse install
";

/// Runs all of them, or those with this word, also after one that fails.
pub fn run(args: &[String]) -> ExitCode {
    let word = match args {
        [] => "",
        [word] if !word.starts_with('-') => word,
        [flag] if flag == "--help" || flag == "-h" => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => return usage_error("one word at most: see `cargo xtask rehearse --help`"),
    };
    let mut acts = acts(documented::lines().into_iter().map(|(_, line)| line));
    acts.retain(|act| act.to_string().contains(word));
    if acts.is_empty() {
        return usage_error(&format!("no line of the documents that is rehearsed has `{word}` in it"));
    }
    let mut progress = Progress::begin(acts.len());
    let failures: Vec<String> =
        acts.iter().filter_map(|act| progress.step(&act.to_string(), || act.run()).err()).collect();
    println!("\n{}", progress.summary());
    if failures.is_empty() {
        println!("everything that the documents tell people to type works");
        return ExitCode::SUCCESS;
    }
    for failure in &failures {
        eprintln!("xtask: {failure}");
    }
    ExitCode::FAILURE
}

/// Something to type, shortened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// A chore with these words.
    Chore(String),
    /// The command, installed with these words.
    Install(String),
}

/// What these lines come to. Many of them are one and the same bench when shortened.
fn acts(lines: impl Iterator<Item = String>) -> BTreeSet<Act> {
    lines.flat_map(|line| shortened(&line)).collect()
}

/// The rest are run by tests: examples, simulations, `tenure` itself, and the tests.
fn shortened(line: &str) -> Vec<Act> {
    let words = line.strip_prefix("cargo ").unwrap_or(line);
    if words.starts_with("xtask bench") {
        // All of them, whichever are named: those add up to all.
        return vec![Act::Chore("bench --quick".to_owned())];
    }
    if let Some(words) = words.strip_prefix("xtask torture") {
        let words: Vec<_> = words.split_whitespace().collect();
        // `[--store S]` is how a line is written down, and not typed.
        if words.iter().any(|word| word.starts_with('[')) {
            return Vec::new();
        }
        return vec![Act::Chore(format!("torture {} {TORTURE}", without_extent(&words)).replace("  ", " "))];
    }
    words.strip_prefix("install ").map(|words| vec![Act::Install(words.to_owned())]).unwrap_or_default()
}

/// Without what says how long, and by which seed: one extent serves all.
fn without_extent(words: &[&str]) -> String {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => {}
            "--minutes" | "--seed" | "--seconds" => drop(words.next()),
            other => kept.push(other),
        }
    }
    kept.join(" ")
}

impl Act {
    fn run(&self) -> Result<(), String> {
        match self {
            Self::Chore(words) => succeed(&Cargo::new(&format!("xtask {words}"))),
            Self::Install(words) => install(words),
        }
    }
}

impl std::fmt::Display for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Chore(words) => write!(f, "cargo xtask {words}"),
            Self::Install(words) => write!(f, "cargo install {words}"),
        }
    }
}

fn succeed(call: &Cargo) -> Result<(), String> {
    match call.run() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{call}` failed: {status}")),
        Err(error) => Err(format!("`{call}` cannot be run: {error}")),
    }
}

/// Not optimised, and elsewhere: what the user has installed is not ours to replace.
fn install(words: &str) -> Result<(), String> {
    let root = std::env::temp_dir().join(format!("tenure-rehearsal-{}", std::process::id()));
    let installed = succeed(
        &Cargo::new(&format!("install --debug --locked {words} --root")).with(&[root.display().to_string()]),
    )
    .and_then(|()| tells_its_version(&root.join("bin/tenure")));
    _ = std::fs::remove_dir_all(&root);
    installed
}

fn tells_its_version(command: &Path) -> Result<(), String> {
    let told = Command::new(command).arg("version").status();
    match told {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("`{} version`: {other:?}", command.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Vec<String> {
        shortened(line).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines_are_shortened_to_what_they_have_in_common() {
        assert_eq!(of("cargo xtask bench"), ["cargo xtask bench --quick"]);
        assert_eq!(of("cargo xtask bench --quick"), ["cargo xtask bench --quick"]);
        assert_eq!(of("cargo xtask bench node"), ["cargo xtask bench --quick"], "it is one of all");
        let torture = "cargo xtask torture --store all --seconds 10";
        assert_eq!(of("cargo xtask torture --store all --minutes 3 --seed 11"), [torture]);
        assert_eq!(of("cargo xtask torture --quick"), ["cargo xtask torture --seconds 10"]);
        assert_eq!(of("cargo install --path crates/x"), ["cargo install --path crates/x"]);
        assert!(of("cargo xtask torture --partitions [--store S]").is_empty());
        assert!(of("cargo xtask test").is_empty(), "it is what runs this");
    }

    #[test]
    fn the_documents_have_lines_of_every_kind() {
        let acts = acts(documented::lines().into_iter().map(|(_, line)| line));
        let has = |start: &str| acts.iter().any(|act| act.to_string().starts_with(start));
        assert!(has("cargo xtask bench") && has("cargo xtask torture") && has("cargo install"), "{acts:?}");
    }
}
