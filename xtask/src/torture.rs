//! `cargo xtask torture`: real processes under random faults, judged from outside.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::cargo::Cargo;
use crate::usage_error;

/// So many faults, where nobody says otherwise: some minutes.
const FAULTS: u64 = 2000;

/// Builds the command and its torturer, then lets it loose; its exit code is ours.
pub fn run(args: &[String]) -> ExitCode {
    if let [first, rest @ ..] = args
        && first == "--chaos"
    {
        return match Chaos::parse(rest) {
            Ok(chaos) => chaos.run(),
            Err(message) => usage_error(&message),
        };
    }
    let build = Cargo::new("build --release --quiet --package tenure-cli --package tenure-torture --bins");
    if !build.run().is_ok_and(|status| status.success()) {
        eprintln!("xtask: what is needed could not be built: {build}");
        return ExitCode::FAILURE;
    }
    let Some(binaries) = binaries() else {
        eprintln!("xtask: the target directory cannot be found");
        return ExitCode::FAILURE;
    };
    let tortured = Command::new(binaries.join("torture")).args(args).status();
    match tortured {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("xtask: the torture cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The tests of chaos (candidates on a file, and groups on a network of their own), which always take the same seed in
/// `cargo xtask test`, with another one and at length.
#[derive(Debug, PartialEq, Eq)]
struct Chaos {
    seed: u64,
    faults: u64,
}

impl Chaos {
    fn parse(args: &[String]) -> Result<Self, String> {
        let random = RandomState::new().hash_one(std::process::id()) >> 32;
        let mut chaos = Self { seed: random, faults: FAULTS };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            let place = match flag.as_str() {
                "--seed" => &mut chaos.seed,
                "--faults" => &mut chaos.faults,
                other => {
                    return Err(format!(
                        "`torture --chaos` has no flag `{other}`; it takes --seed and --faults"
                    ));
                }
            };
            let value = args.next().ok_or_else(|| format!("`{flag}` needs a number"))?;
            *place = value.parse().map_err(|_| format!("`{value}` is no number"))?;
        }
        Ok(chaos)
    }

    fn run(&self) -> ExitCode {
        println!("chaos: seed {}, {} faults", self.seed, self.faults);
        println!("again: cargo xtask torture --chaos --seed {} --faults {}", self.seed, self.faults);
        let mut tests = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        tests.args(["nextest", "run", "--package", "tenure-torture", "--success-output=final"]);
        tests.arg("chaos").env("TENURE_SEED", self.seed.to_string());
        tests.env("TENURE_FAULTS", self.faults.to_string());
        match tests.status() {
            Ok(status) if status.success() => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("xtask: the tests cannot be run: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Where cargo has put them: this program is itself in a profile's directory beside theirs.
fn binaries() -> Option<PathBuf> {
    let here = env::current_exe().ok()?;
    Some(here.parent()?.parent()?.join("release"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Chaos, String> {
        Chaos::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn chaos_takes_the_seed_that_it_is_given_and_another_one_every_time_otherwise() {
        assert_eq!(parse("--seed 7 --faults 30"), Ok(Chaos { seed: 7, faults: 30 }));
        assert_ne!(parse("").unwrap().seed, parse("").unwrap().seed);
        assert!(parse("--sead 7").unwrap_err().contains("--seed"));
        assert!(parse("--seed").unwrap_err().contains("needs a number"));
    }
}
