//! `tenure check`: can this store be relied on from here, and how fast is it?

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tenure::Store;
use tenure_store::Finding;

use super::measure::{self, Clocks, Latency, Measured};
use crate::cli::{Check, Global};
use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, GOOD, Table, length, millis, styled};
use crate::store::{self, ask};

/// What is asked for where nothing else is said.
const DEFAULT_TTL: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct Report {
    fine: bool,
    findings: Vec<Found>,
    read_ms: Option<Latency>,
    renew_ms: Option<Latency>,
    /// The least that would work.
    supported_ttl_ms: Option<u64>,
    /// What to use in production.
    advised_ttl_ms: Option<u64>,
}

#[derive(Serialize)]
struct Found {
    name: &'static str,
    fine: bool,
    value: String,
    advice: Option<String>,
}

pub fn check(global: &Global, asked: &Check) -> Result<Exit, Failure> {
    crate::runtime()?.block_on(async {
        let clocks = Clocks::read();
        let connected = match asked.write {
            true => store::connect_or_create(global).await,
            false => store::connect(global).await,
        };
        match connected {
            Ok(store) => examine(global, &store, &clocks).await,
            // It was looked at, and that is what was seen.
            Err(Failure::NotSetUp(problem)) => {
                let advice = "with --write, `tenure check` sets it up and measures it";
                tell(global, vec![wrong("store", &problem, advice)], None, &clocks)
            }
            Err(other) => Err(other),
        }
    })
}

async fn examine(global: &Global, store: &Arc<dyn Store>, clocks: &Clocks) -> Result<Exit, Failure> {
    let mut findings = ask(store.examine()).await?;
    let measured = match measure::measure(&store::connect_to_scratch(global).await?).await {
        Ok(measured) => Some(measured),
        Err(Failure::Store(problem)) => {
            findings.push(wrong("session", "cannot be kept", &problem));
            None
        }
        Err(other) => return Err(other),
    };
    tell(global, findings, measured, clocks)
}

fn tell(
    global: &Global,
    mut findings: Vec<Finding>,
    measured: Option<Measured>,
    clocks: &Clocks,
) -> Result<Exit, Failure> {
    findings.extend(measured.as_ref().map(speed));
    findings.extend(clocks.findings());
    let report = Report {
        fine: findings.iter().all(|finding| finding.fine),
        findings: findings.into_iter().map(Found::of).collect(),
        read_ms: measured.map(|measured| measured.read),
        renew_ms: measured.map(|measured| measured.renew),
        supported_ttl_ms: measured.map(|measured| millis(measured.supported_ttl())),
        advised_ttl_ms: measured.as_ref().map(|measured| millis(advised_ttl(measured))),
    };
    match global.json {
        true => output::json(&report)?,
        false => report.print(measured)?,
    }
    Ok(if report.fine { Exit::DONE } else { Exit::NO })
}

fn wrong(name: &'static str, value: &str, advice: &str) -> Finding {
    Finding { name, fine: false, value: value.to_owned(), advice: Some(advice.to_owned()) }
}

/// The default, unless this store is too slow for it.
fn advised_ttl(measured: &Measured) -> Duration {
    measured.supported_ttl().max(DEFAULT_TTL)
}

/// Whether the default would do.
fn speed(measured: &Measured) -> Finding {
    let ttl = measured.supported_ttl();
    let shown = humantime::format_duration(ttl);
    let advised = humantime::format_duration(advised_ttl(measured));
    let value = format!("{advised} is advised; {shown} is the least that this store supports from here");
    if ttl > DEFAULT_TTL {
        let advice = format!("the default ttl is too short for this store from here; give --ttl {shown}");
        return wrong("ttl", &value, &advice);
    }
    Finding { name: "ttl", fine: true, value, advice: None }
}

impl Found {
    fn of(finding: Finding) -> Self {
        let Finding { name, fine, value, advice } = finding;
        Self { name, fine, value, advice }
    }
}

impl Report {
    fn print(&self, measured: Option<Measured>) -> Result<(), Failure> {
        let mut table = Table::new(&["CHECK", "STATE", "VALUE", "ADVICE"]);
        for found in &self.findings {
            let state = if found.fine { styled(GOOD, "ok") } else { styled(BAD, "WARN") };
            let advice = found.advice.clone().unwrap_or_default();
            table.row(vec![found.name.to_owned(), state, found.value.clone(), advice]);
        }
        table.print()?;
        let Some(measured) = measured else { return Ok(()) };
        for (what, latency) in [("a read", measured.read), ("a renewal", measured.renew)] {
            let (half, most) = (length(latency.half()), length(latency.most()));
            output::say(format!("{what} takes {half} (p50), {most} (p99)"))?;
        }
        Ok(())
    }
}
