//! `cargo xtask sim`: the simulation on the command line.

use std::process::ExitCode;
use std::time::SystemTime;

use tenure_core::Plant;
use tenure_sim::config::Config;
use tenure_sim::proof::scene;
use tenure_sim::run::{Outcome, run};
use tenure_sim::scene::Scene;
use tenure_sim::shrink::shrink;
use tenure_sim::sweep::{Scope, sweep};

const HELP: &str = "\
Simulates Tenure's protocol with faults, deterministically.

Usage: cargo xtask sim [--seeds N] [--from S]   many runs, seeds S, S+1, … (default: 20000 from 0)
       cargo xtask sim --seed S [--shrink]      one run again, with its timeline
       cargo xtask sim --plants                 lists the planted bugs

Options:
  --elections    only the world without partitions
  --partitions   only the world in which a coordinator divides partitions
  --plant NAME   plants a bug, to see it found
  --scene NAME   with --seed: sets the scene for a planted bug, without planting it
  --shrink       with --seed: leaves out the faults that do not matter, then shows the timeline
  --quiet        no timeline, no table

Example: cargo xtask sim --seeds 100000
         cargo xtask sim --plant DriftIgnored --seeds 1000
";

#[derive(Default)]
struct Arguments {
    seeds: Option<u64>,
    from: u64,
    seed: Option<u64>,
    plant: Option<Plant>,
    scene: Option<Scene>,
    plants: bool,
    elections: bool,
    partitions: bool,
    shrink: bool,
    quiet: bool,
    help: bool,
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            eprintln!("{problem}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    if arguments.help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    if arguments.plants {
        for plant in Plant::ALL {
            println!("{:<32}{}", plant.name(), plant.describe().trim());
        }
        return ExitCode::SUCCESS;
    }
    match arguments.seed {
        Some(seed) => replay(seed, &arguments),
        None => many(&arguments),
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut number = |name: &str| -> Result<u64, String> {
            let value = words.next().ok_or_else(|| format!("{name} needs a number after it"))?;
            value.parse().map_err(|_| format!("{name} {value}: not a whole number"))
        };
        match word.as_str() {
            "--seeds" => arguments.seeds = Some(number("--seeds")?),
            "--from" => arguments.from = number("--from")?,
            "--seed" => arguments.seed = Some(number("--seed")?),
            "--plant" => {
                let name = words.next().ok_or("--plant needs a name; --plants lists them")?;
                let found = Plant::ALL.iter().find(|plant| plant.name() == name);
                arguments.plant = Some(
                    *found.ok_or_else(|| format!("no planted bug is called {name}; --plants lists them"))?,
                );
            }
            "--scene" => {
                let name = words.next().ok_or("--scene needs a name")?;
                let found = Scene::ALL.iter().find(|scene| format!("{scene:?}") == name);
                arguments.scene =
                    Some(*found.ok_or_else(|| format!("no scene is called {name}: {:?}", Scene::ALL))?);
            }
            "--plants" => arguments.plants = true,
            "--elections" => arguments.elections = true,
            "--partitions" => arguments.partitions = true,
            "--shrink" => arguments.shrink = true,
            "--quiet" => arguments.quiet = true,
            "--help" | "-h" => arguments.help = true,
            _ => return Err(format!("unknown option {word}")),
        }
    }
    Ok(arguments)
}

fn many(arguments: &Arguments) -> ExitCode {
    let seeds = arguments.seeds.unwrap_or(20_000);
    let began = SystemTime::now();
    let scope = match arguments.plant {
        _ if arguments.partitions => Scope::Partitions,
        None if arguments.elections => Scope::Elections,
        Some(plant) => Scope::of(plant),
        None => Scope::Both,
    };
    let whole = sweep(arguments.from, seeds, arguments.plant, scope, false);
    let seconds = began.elapsed().map_or(f64::NAN, |elapsed| elapsed.as_secs_f64());
    for broken in whole.violations.iter().take(10) {
        let seed = broken.seed;
        println!("seed {seed}: {}: {}", broken.violation.promise, broken.violation.how);
        let world = if broken.partitions { " --partitions" } else { "" };
        println!("  again: cargo xtask sim --seed {seed}{world} --shrink{}", plant_option(arguments.plant));
    }
    if !arguments.quiet {
        println!("{}\n", whole.coverage.table());
    }
    println!("elections: {}", whole.elections);
    println!("assignments of partitions: {}", whole.assignments);
    println!("seconds: {seconds:.1}");
    summary(whole.seeds, whole.violations.len(), whole.hours, seconds, whole.hash)
}

fn replay(seed: u64, arguments: &Arguments) -> ExitCode {
    let divides = arguments.partitions || arguments.plant.is_some_and(Plant::is_about_partitions);
    let config = if divides { Config::with_partitions(seed) } else { Config::from_seed(seed) };
    let mut config = config.with_scene(arguments.scene.or(arguments.plant.and_then(scene)));
    if arguments.shrink {
        let before = config.faults.len();
        config = shrink(&config, arguments.plant);
        println!("shrunk from {before} faults to {}\n", config.faults.len());
    }
    let began = SystemTime::now();
    let Outcome { violation, hash, simulated, timeline, elections, .. } =
        run(config.clone(), arguments.plant, !arguments.quiet);
    let seconds = began.elapsed().map_or(f64::NAN, |elapsed| elapsed.as_secs_f64());
    if !arguments.quiet {
        let kinds = (config.capabilities, config.ages, config.nodes.len(), config.elections);
        println!("seed {seed}: {:?}, ages {:?}, {} nodes, {} elections", kinds.0, kinds.1, kinds.2, kinds.3);
        if let Some(division) = &config.division {
            println!("  {division:?}");
        }
        for (n, node) in config.nodes.iter().enumerate() {
            println!("  n{n}: {node:?}");
        }
        for line in timeline {
            println!("{line}");
        }
    }
    println!("elections: {elections}");
    #[allow(clippy::cast_precision_loss, reason = "hours for people to read")]
    let hours = simulated as f64 / 3.6e12;
    summary(1, usize::from(violation.is_some()), hours, seconds, hash)
}

fn plant_option(plant: Option<Plant>) -> String {
    plant.map_or_else(String::new, |plant| format!(" --plant {}", plant.name()))
}

/// The lines that scripts read.
fn summary(seeds: u64, violations: usize, hours: f64, seconds: f64, hash: u64) -> ExitCode {
    println!("seeds: {seeds}");
    println!("violations: {violations}");
    println!("simulated hours: {hours:.1}");
    println!("simulated hours per second: {:.1}", hours / seconds.max(1e-9));
    println!("trace hash: {hash:016x}");
    if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
