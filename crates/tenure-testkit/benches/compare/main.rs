//! Tenure and what people use today, on the same servers in one run: planned hand-over, crash, pause, silent cut, and
//! what idle candidates cost. Writes docs/comparison.md and its plot; a quick run writes them into the target
//! directory.

#[path = "../common/mod.rs"]
mod common;
mod figures;
mod machine;
#[path = "../peers/mod.rs"]
mod peers;
mod plot;
mod report;
mod rows;
mod trials;
mod wins;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use common::{Bench, Outcome};
use rows::{Servers, rows};

/// Of every lease and session. The least that etcd grants.
const TTL: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    common::run("compare", measure, peers::part)
}

/// How much is measured.
struct Extent {
    handovers: usize,
    crashes: usize,
    mishaps: usize,
    /// How long two may claim to lead before nobody waits for the end of it.
    patience: Duration,
    idle: Duration,
}

const USUAL: Extent = Extent {
    handovers: 100,
    crashes: 8,
    mishaps: 5,
    patience: Duration::from_secs(10),
    idle: Duration::from_secs(20),
};
const QUICK: Extent = Extent {
    handovers: 5,
    crashes: 1,
    mishaps: 1,
    patience: Duration::from_secs(6),
    idle: Duration::from_secs(5),
};

fn measure(bench: &Bench) -> Outcome<()> {
    let extent = if bench.quick { QUICK } else { USUAL };
    let servers = Servers::start()?;
    let rows = rows(&servers)?;
    let figures = trials::measure(&rows, &extent)?;
    for (row, figures) in rows.iter().zip(&figures) {
        figures.tell(bench, row)?;
    }
    let (directory, machine) = (directory(bench.quick)?, machine::Machine::look()?);
    std::fs::write(directory.join("comparison.svg"), plot::draw(&rows, &figures, &extent))?;
    std::fs::write(directory.join("comparison.md"), report::write(&rows, &figures, &extent, &machine))?;
    println!("\nwritten: comparison.md and comparison.svg in {}", directory.display());
    Ok(())
}

fn directory(quick: bool) -> Outcome<PathBuf> {
    let directory = if quick {
        PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
    } else {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
    };
    std::fs::create_dir_all(&directory)?;
    Ok(directory.canonicalize()?)
}
