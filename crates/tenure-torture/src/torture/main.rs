//! `cargo xtask torture`: `tenure run` processes that are killed, stopped and signalled at random, and
//! judged by what their programs were seen doing.
//!
//! | file | what it is |
//! |---|---|
//! | `program` | what is run: it and a descendant in a session of its own say when they are alive |
//! | `crew` | the `tenure run` processes, and who belongs to them |
//! | `mischief` | what is done to them |
//! | `judge` | whether two terms were ever served at once, and whether anybody was left behind |

mod crew;
mod judge;
mod mischief;
mod program;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use tenure_core::Dice;
use tenure_store::clock;

use crew::Crew;

/// Whatever goes wrong ends the torture with a message.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

const HELP: &str = "\
Kills, stops and signals `tenure run` processes at random, and judges what their programs did.

Usage: cargo xtask torture [--quick] [--seconds N] [--seed S] [--runs N] [--sabotage]

  --quick       two minutes instead of twenty
  --seconds N   so long
  --seed S      the same mischief in the same order (processes still differ in time)
  --runs N      so many `tenure run` at once (3)
  --sabotage    stops guardians together with their supervisors, which nobody can survive: to see that
                the judge finds out

Example: cargo xtask torture --quick
";

struct Asked {
    seconds: u64,
    seed: u64,
    runs: usize,
    sabotage: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().map(String::as_str) == Some(program::WORD) {
        program::run(&words[1..]);
    }
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let asked = match parse(&words) {
        Ok(asked) => asked,
        Err(problem) => {
            eprintln!("torture: {problem}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match torture(&asked) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[String]) -> Result<Asked, String> {
    let mut asked = Asked { seconds: 1200, seed: clock::now().as_nanos(), runs: 3, sabotage: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().ok_or_else(|| format!("`{word}` needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("`{value}` is no number"))
        };
        match word.as_str() {
            "--quick" => asked.seconds = 120,
            "--seconds" => asked.seconds = number()?,
            "--seed" => asked.seed = number()?,
            "--runs" => asked.runs = usize::try_from(number()?).unwrap_or(3).max(1),
            "--sabotage" => asked.sabotage = true,
            unknown => return Err(format!("there is no flag `{unknown}`")),
        }
    }
    Ok(asked)
}

fn torture(asked: &Asked) -> Outcome<bool> {
    let tenure = std::env::var_os("TENURE_COMMAND").map(PathBuf::from);
    let tenure =
        tenure.ok_or("TENURE_COMMAND must name the `tenure` binary; `cargo xtask torture` does that")?;
    let mut dice = Dice::new(asked.seed);
    let mut crew = Crew::assemble(tenure, asked.runs)?;
    println!("torture: {} runs for {} s, seed {}", asked.runs, asked.seconds, asked.seed);
    let end = clock::now() + Duration::from_secs(asked.seconds);
    let mut told = clock::now();
    let mut done = mischief::Tally::default();
    while clock::now() < end {
        std::thread::sleep(dice.jitter(Duration::from_millis(250)));
        crew.mend()?;
        mischief::one(&mut crew, &mut dice, asked.sabotage, &mut done)?;
        if clock::now().since(told) >= Duration::from_secs(10) {
            told = clock::now();
            let left = end.since(told).as_secs();
            println!("  {left:>4} s left, {} deeds, {} terms", done.total(), judge::terms(&crew.log())?);
        }
    }
    crew.dismiss()?;
    let verdict = judge::judge(&crew)?;
    println!("\n{done}");
    println!("seed: {}", asked.seed);
    println!("deeds: {}", done.total());
    println!("terms: {}", verdict.terms);
    println!("violations: {}", verdict.violations.len());
    println!("orphans: {}", verdict.orphans.len());
    for violation in &verdict.violations {
        println!("VIOLATION {violation}");
    }
    for orphan in &verdict.orphans {
        println!("ORPHAN process {orphan}");
    }
    let fine = verdict.violations.is_empty() && verdict.orphans.is_empty() && verdict.terms > 1;
    if !fine {
        println!("what was logged stays in {}", crew.keep().display());
        println!("again: cargo xtask torture --seconds {} --seed {}", asked.seconds, asked.seed);
    }
    Ok(fine)
}
