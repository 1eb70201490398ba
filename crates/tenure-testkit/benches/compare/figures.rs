//! What is measured of one who is compared.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::TTL;
use crate::common::double::Double;
use crate::common::samples::{Samples, human};
use crate::common::{Bench, Outcome};
use crate::rows::Row;

#[derive(Default)]
pub struct Figures {
    /// From the call of `resign`, or what it is called, to the successor leading; none where there is no such call.
    pub handover: Option<Samples>,
    /// From `kill -9` of the leader to its successor leading.
    pub crash: Option<Samples>,
    pub pause: Option<Double>,
    /// None where there is no network.
    pub cut: Option<Double>,
    pub idle: Idle,
    /// What went wrong, and what was not measured because of it: a fact like the others.
    pub failed: Vec<String>,
}

/// What three candidates cost together while nothing happens.
#[derive(Default)]
pub struct Idle {
    /// Per second; none where there is no network.
    pub messages: Option<f64>,
    /// Of one core.
    pub cpu_percent: f64,
    pub memory_mib: f64,
    /// Of the program on disk.
    pub program_mib: Option<f64>,
}

impl Figures {
    /// How much longer than the ttl the slowest crash took.
    pub fn beyond(&self) -> Option<Duration> {
        self.crash.as_ref().map(|crash| crash.percentile(100).saturating_sub(TTL))
    }

    /// Notes what went wrong in which trial, and goes on without the rest of it.
    pub fn unless_failed<T>(&mut self, trial: &str, outcome: Outcome<T>) -> Option<T> {
        outcome.map_err(|error| self.failed.push(format!("{trial}: {error}"))).ok()
    }

    /// The figures of a row as lines of the bench.
    pub fn tell(&self, bench: &Bench, row: &Row<'_>) -> Outcome<()> {
        let name = row.name();
        if let Some(handover) = &self.handover {
            let (p50, p99) = (human(handover.percentile(50)), human(handover.percentile(99)));
            bench.tell(&format!("{name}: hand-over, p50 / p99"), &format!("{p50} / {p99}"), "–")?;
        }
        if let Some(crash) = &self.crash {
            let (p50, worst) = (human(crash.percentile(50)), human(crash.percentile(100)));
            bench.tell(&format!("{name}: crash, p50 / worst"), &format!("{p50} / {worst}"), "–")?;
        }
        for failed in &self.failed {
            bench.tell(&format!("{name}: failed"), failed, "–")?;
        }
        for (what, double) in [("a pause", self.pause), ("a silent cut", self.cut)] {
            let Some(double) = double else { continue };
            let (figure, told) = (format!("{name}: two leaders after {what}"), double.to_string());
            if row.is_tenure {
                bench.conclude(&figure, &told, "0 ms", if double.is_none() { "met" } else { "MISSED" })?;
            } else {
                bench.tell(&figure, &told, "–")?;
            }
        }
        let Idle { messages, cpu_percent, memory_mib, program_mib } = &self.idle;
        let messages = messages.map_or_else(|| String::from("no network"), |rate| format!("{rate:.1}/s"));
        let program = program_mib.map_or_else(|| String::from("–"), |size| format!("{size:.0} MiB"));
        let told =
            format!("{messages}, {cpu_percent:.2} % of a core, {memory_mib:.1} MiB, program {program}");
        bench.tell(&format!("{name}: idle, three together"), &told, "–")
    }
}

/// The files of a program, those in directories included, in MiB.
pub fn size(program: &[PathBuf]) -> Outcome<f64> {
    fn bytes(path: &Path) -> std::io::Result<u64> {
        if !path.is_dir() {
            return Ok(path.metadata()?.len());
        }
        let mut sum = 0;
        for entry in path.read_dir()? {
            let entry = entry?;
            // What a link leads to is counted where it is.
            if !entry.file_type()?.is_symlink() {
                sum += bytes(&entry.path())?;
            }
        }
        Ok(sum)
    }
    let sizes = program.iter().map(|path| bytes(path)).sum::<Result<u64, _>>()?;
    Ok(sizes as f64 / f64::from(1 << 20))
}
