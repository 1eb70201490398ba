//! `cargo xtask torture`: real processes under random faults, judged from outside. With `--store`, nodes of the
//! library on that store (`stores`); without, `tenure run` processes that are killed, stopped and signalled at
//! random, and judged by what their programs were seen doing:
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
mod soak;
mod stores;

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
Real processes under random faults, judged from outside.

Usage: cargo xtask torture --store S [--minutes M] [--seed N] [--sabotage]
       cargo xtask torture --partitions [--count N] [--store S] [--minutes M] [--seed N] [--sabotage]
       cargo xtask torture --soak [--store S] [--minutes M] [--seed N]
       cargo xtask torture [--minutes M] [--seed N] [--runs N] [--sabotage]
       cargo xtask torture --chaos [--faults N] [--seed N]

With --store, five nodes with different ttl lead, write under their term and work on partitions on a real server,
while they, their network and the server suffer every fault of docs/safety.md, several at a time. With
--partitions, three coordinators divide partitions among ten workers, and all are killed, stopped, cut off and
restarted one after the other. With --soak, three `tenure node` bear late and lost replies, few connections, 300
event streams and a log on a full disk: at most two leader changes, and nothing grows. Without any of them, `tenure run` processes are killed, stopped and signalled, and it is
judged what their programs did. With --chaos, the tests of chaos in tenure-torture run with a seed of their own:
candidates on a file, and groups on a network that is cut.

  --store S     sqlite, postgres, mysql, zookeeper, raft; or all, one after the other
  --partitions  coordinators and workers (on postgres, unless --store says otherwise)
  --count N     so many partitions (1000)
  --soak        on postgres, unless --store says otherwise (mysql, zookeeper); 60 minutes
  --minutes M   so long (20), on each store
  --quick       two minutes
  --seconds N   so long
  --steps N     until so many things were done to the nodes or the store, however long that takes; then it is not
                judged how soon somebody leads again (the tests use this: the machine may be busy)
  --seed N      the same faults in the same order (processes still differ in time)
  --faults N    so many faults of chaos (2000)
  --runs N      so many `tenure run` at once (3)
  --sabotage    plants a mistake, to see that the judge finds out: nodes do not ask their check; guardians are
                stopped together with their supervisors

Example: cargo xtask torture --store postgres --minutes 5
";

struct Asked {
    stores: Vec<stores::Kind>,
    partitions: bool,
    soak: bool,
    count: u32,
    seconds: Option<u64>,
    steps: Option<u64>,
    seed: u64,
    runs: usize,
    sabotage: bool,
}

impl Asked {
    fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(if self.soak { 3600 } else { 1200 })
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().map(String::as_str) == Some(program::WORD) {
        program::run(&words[1..]);
    }
    if let Some(ending) = stores::part(&words) {
        return ended(ending.map(|()| true));
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
    ended(if asked.stores.is_empty() { torture(&asked) } else { torture_stores(&asked) })
}

fn ended(outcome: Outcome<bool>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[String]) -> Result<Asked, String> {
    let mut asked = Asked {
        stores: Vec::new(),
        partitions: false,
        soak: false,
        count: 1000,
        seconds: None,
        steps: None,
        seed: clock::now().as_nanos(),
        runs: 3,
        sabotage: false,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--store" {
            let name = words.next().ok_or("`--store` needs a name")?;
            asked.stores = match name.as_str() {
                "all" => stores::Kind::ALL.to_vec(),
                name => vec![stores::Kind::named(name).ok_or_else(|| format!("there is no store `{name}`"))?],
            };
            continue;
        }
        let mut number = || {
            let value = words.next().ok_or_else(|| format!("`{word}` needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("`{value}` is no number"))
        };
        match word.as_str() {
            "--quick" => asked.seconds = Some(120),
            "--minutes" => asked.seconds = Some(number()? * 60),
            "--seconds" => asked.seconds = Some(number()?),
            "--steps" => asked.steps = Some(number()?),
            "--seed" => asked.seed = number()?,
            "--runs" => asked.runs = usize::try_from(number()?).unwrap_or(3).max(1),
            "--sabotage" => asked.sabotage = true,
            "--soak" => asked.soak = true,
            "--partitions" => asked.partitions = true,
            "--count" => asked.count = u32::try_from(number()?).map_err(|error| error.to_string())?,
            unknown => return Err(format!("there is no flag `{unknown}`")),
        }
    }
    if (asked.partitions || asked.soak) && asked.stores.is_empty() {
        asked.stores = vec![stores::Kind::Postgres];
    }
    Ok(asked)
}

/// A binary that was built together with this one.
fn beside(name: &str) -> Outcome<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("{} is not there; `cargo xtask torture` builds it", path.display()).into())
    }
}

fn torture_stores(asked: &Asked) -> Outcome<bool> {
    let &Asked { partitions, soak, count, steps, seed, sabotage, .. } = asked;
    let seconds = asked.seconds();
    let mut fine = true;
    for &kind in &asked.stores {
        let how = match (soak, partitions) {
            (true, _) => String::from("--soak "),
            (_, true) => format!("--partitions --count {count} "),
            _ => String::new(),
        };
        let extent = steps.map_or_else(|| format!("--seconds {seconds}"), |steps| format!("--steps {steps}"));
        let again = format!("cargo xtask torture {how}--store {} {extent} --seed {seed}", kind.name());
        let length = Duration::from_secs(seconds);
        fine &= if soak {
            soak::soak(&soak::Asked { kind, length, seed, again })?
        } else {
            let cast = if partitions { stores::Cast::division(count) } else { stores::Cast::five() };
            stores::torture(&stores::Asked { kind, cast, length, steps, seed, blind: sabotage, again })?
        };
        println!();
    }
    Ok(fine)
}

fn torture(asked: &Asked) -> Outcome<bool> {
    let mut dice = Dice::new(asked.seed);
    let mut crew = Crew::assemble(beside("tenure")?, asked.runs)?;
    println!("torture: {} runs for {} s, seed {}", asked.runs, asked.seconds(), asked.seed);
    let end = clock::now() + Duration::from_secs(asked.seconds());
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
        println!("again: cargo xtask torture --seconds {} --seed {}", asked.seconds(), asked.seed);
    }
    Ok(fine)
}
