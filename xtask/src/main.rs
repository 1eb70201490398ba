//! Tenure's own chores: every check, the simulation, the benches, the rules of the repository.
//!
//! `cargo xtask help` lists them. One file per chore; this one only picks the chore.

mod bench;
mod cargo;
mod documented;
mod flakes;
mod green;
mod nextest;
mod progress;
mod rehearse;
mod setup;
mod sim;
mod suggest;
mod test;
mod tidy;
mod torture;

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Tenure's own chores.

Usage: cargo xtask CHORE [ARGS]

Chores:
  test    every check and every test; installs what is missing, and says so
  flakes  the tests several times beside busy processors, and which of them failed at least once
  green   whether HEAD is the commit on which `test` passed last
  sim     simulates the core under faults; all arguments go to tenure-sim
  bench   measures; all arguments go to the benches
  torture real processes under random faults, on every store, judged from outside
  rehearse  runs what of the documents' `cargo` lines is too long for `test`, each as shortly as it can
  tidy    the repository's own rules: a pure core, short files, living links
  setup   only installs what `test` needs
  help    this text

Examples:
  cargo xtask test                      what CI runs
  cargo xtask test --quick              without the long simulation and the documentation
  cargo xtask test -- deadline          hands `deadline` to cargo-nextest: only tests of that name
  cargo xtask flakes --runs 10          ten runs of the tests beside two busy threads
  cargo xtask sim --seeds 10000         many seeds
  cargo xtask sim --seed 42             one seed again, the same to the last bit
  cargo xtask bench                     all benches
  cargo xtask torture --store all --minutes 2   two minutes of mischief on each store
  cargo xtask torture --soak            an hour of bad weather; nobody may stop leading, and nothing may grow
";

/// The names in `HELP`, for the suggestion after a slip of the finger.
const CHORES: [&str; 10] =
    ["test", "flakes", "green", "sim", "bench", "torture", "rehearse", "tidy", "setup", "help"];

/// The exit code for words that were not understood, here as in the `tenure` command.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let chore = args.next();
    let rest: Vec<String> = args.collect();
    match chore.as_deref() {
        Some("test") => test::run(&rest),
        Some("flakes") => flakes::run(&rest),
        Some("green") => without_arguments("green", &rest, green::run),
        Some("sim") => sim::run(&rest),
        Some("bench") => bench::run(&rest),
        Some("torture") => torture::run(&rest),
        Some("rehearse") => rehearse::run(&rest),
        Some("tidy") => without_arguments("tidy", &rest, tidy::run),
        Some("setup") => without_arguments("setup", &rest, setup::run),
        Some("help" | "--help" | "-h") => {
            // A reader such as `head` may leave early; that is no failure.
            _ = io::stdout().write_all(HELP.as_bytes());
            ExitCode::SUCCESS
        }
        Some(unknown) => {
            let nearest = suggest::nearest(unknown, &CHORES);
            usage_error(&format!("there is no chore `{unknown}`; did you mean `cargo xtask {nearest}`?"))
        }
        None => usage_error("which chore? See `cargo xtask help`"),
    }
}

fn without_arguments(chore: &str, args: &[String], run: fn() -> ExitCode) -> ExitCode {
    match args.first() {
        None => run(),
        Some(arg) => {
            usage_error(&format!("`{arg}` is one word too many; the whole command is `cargo xtask {chore}`"))
        }
    }
}

fn usage_error(message: &str) -> ExitCode {
    eprintln!("xtask: {message}");
    ExitCode::from(USAGE)
}

/// The root of the repository: the directory above this crate's.
fn repository() -> PathBuf {
    // Asked at run time first, because a target directory may be shared between checkouts.
    let here = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let mut root = PathBuf::from(here);
    root.pop();
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_chore() {
        for chore in CHORES {
            assert!(HELP.contains(&format!("\n  {chore} ")), "`{chore}` is not in the help");
        }
    }
}
