//! docs/comparison.md, written from what was measured.

use std::fmt::Write as _;
use std::time::Duration;

use crate::common::cast::Network;
use crate::common::samples::{Samples, human};
use crate::figures::Figures;
use crate::machine::Machine;
use crate::rows::Row;
use crate::{Extent, TTL, wins};

pub fn write(rows: &[Row<'_>], figures: &[Figures], extent: &Extent, machine: &Machine) -> String {
    let mut page = head(extent, machine);
    page += &mishaps(rows, figures);
    page += &failures(rows, figures);
    page += &costs(rows, figures);
    page += "\n## Where others are ahead\n\nOf Tenure on the same server, or, where Tenure has no row on that server, of the best row that Tenure has. Written from the figures above.\n\n";
    page += &wins::tell(rows, figures);
    page += &notes(rows);
    page += &method(extent);
    page
}

fn head(extent: &Extent, machine: &Machine) -> String {
    let Machine { date, hardware, system, versions } = machine;
    format!(
        "# Tenure beside what people use today

This page is written by `cargo xtask bench compare`, and not by hand. Facts of one run; what they are worth depends on what you need.

- When: {date}
- Where: {hardware}; {system}; everything on one machine, servers with everything synced to disk
- What: {}
- Every lease and session has a ttl of {}, unless a note says that there is none. Three candidates of each. {} hand-overs, {} crashes, {} pauses and {} cuts per row.

![the figures as a plot](comparison.svg)

",
        versions.join("; "),
        human(TTL),
        extent.handovers,
        extent.crashes,
        extent.mishaps,
        extent.mishaps,
    )
}

fn mishaps(rows: &[Row<'_>], figures: &[Figures]) -> String {
    let mut table = String::from(
        "## When the leader changes

| who, on what | planned hand-over, p50 / p99 | crash (`kill -9`) → successor leads, p50 / worst | of that beyond the ttl | two leaders after a pause longer than the ttl | two leaders after a silent cut longer than the ttl |
|---|---|---|---|---|---|
",
    );
    for (row, figures) in rows.iter().zip(figures) {
        let pair = |samples: &Samples, high| {
            format!("{} / {}", human(samples.percentile(50)), human(samples.percentile(high)))
        };
        let handover = match &figures.handover {
            Some(samples) => pair(samples, 99),
            None if row.resigns => FAILED.to_owned(),
            None => String::from("it has none"),
        };
        let crash = figures.crash.as_ref().map_or(FAILED.to_owned(), |samples| pair(samples, 100));
        let beyond = match figures.beyond() {
            None => FAILED.to_owned(),
            Some(Duration::ZERO) => String::from("nothing"),
            Some(time) => human(time),
        };
        let cut = match figures.cut {
            Some(cut) => cut.to_string(),
            None if matches!(row.peer.network(), Network::None) => String::from("no network"),
            None => FAILED.to_owned(),
        };
        let pause = figures.pause.map_or(FAILED.to_owned(), |pause| pause.to_string());
        _ = writeln!(table, "| {} | {handover} | {crash} | {beyond} | {pause} | {cut} |", name(row));
    }
    table
}

/// What stands where a row failed before it was measured.
const FAILED: &str = "failed";

fn failures(rows: &[Row<'_>], figures: &[Figures]) -> String {
    let mut list = String::new();
    for (row, figures) in rows.iter().zip(figures) {
        for failed in &figures.failed {
            _ = writeln!(list, "- {} failed: {}", name(row), failed.replace('\n', " "));
        }
    }
    if list.is_empty() { list } else { format!("\n{list}") }
}

fn costs(rows: &[Row<'_>], figures: &[Figures]) -> String {
    let mut table = String::from(
        "
## What it costs while nothing happens

Three candidates together, one of which leads.

| who, on what | messages per second | of one core | memory | program on disk |
|---|---|---|---|---|
",
    );
    for (row, figures) in rows.iter().zip(figures) {
        let idle = &figures.idle;
        let messages = idle.messages.map_or_else(|| String::from("no network"), |rate| format!("{rate:.1}"));
        let program = idle.program_mib.map_or_else(|| String::from("–"), |size| format!("{size:.0} MiB"));
        _ = writeln!(
            table,
            "| {} | {messages} | {:.2} % | {:.1} MiB | {program} |",
            name(row),
            idle.cpu_percent,
            idle.memory_mib
        );
    }
    table
}

fn name(row: &Row<'_>) -> String {
    if row.is_tenure { format!("**{}**", row.name()) } else { row.name() }
}

fn notes(rows: &[Row<'_>]) -> String {
    let mut notes = String::from("\n## What to know about them\n\n");
    let mut told = Vec::new();
    for row in rows.iter().filter(|row| !row.note.is_empty()) {
        if told.contains(&row.note) {
            continue;
        }
        told.push(row.note);
        let same: Vec<String> =
            rows.iter().filter(|other| other.note == row.note).map(|row| row.name()).collect();
        _ = writeln!(notes, "- {}: {}.", same.join("; "), row.note);
    }
    notes
}

fn method(extent: &Extent) -> String {
    format!(
        "
## How it is measured

Every candidate is a process that says when it leads, and, when asked to watch itself, when it last claimed to: all by one clock, that of the machine since its start. One code judges all of them.

- *Planned hand-over*: from the call by which a leader gives up its place to the successor leading. All rows take turns, so whatever the machine does, it does to all.
- *Crash*: from `kill -9` to the successor leading. A lease that was renewed just before is waited for; so up to a ttl is no fault.
- *Two leaders after a pause*: the leader is stopped (SIGSTOP) until another leads, then goes on. The time from then until one of the two ceases to claim; the longest of all rounds. While it is stopped it claims nothing. Where nobody ceases in {patience}, or nobody takes over in that time, there is one round.
- *Two leaders after a silent cut*: everything between the leader and its server (or the other members) is lost, and no connection is closed. From the successor leading until one of the two ceases to claim. The cut lasts until then, or {patience}.
- *Messages*: what candidates say to their server over a proxy of the bench, counted in pieces as they come; where there is no server, packets with something in them between the members.
- *Memory*: what the three share is counted once. *Program*: files of the candidates' program and of the runtime that it needs; the server is not counted.
- Crashes, pauses and cuts of all rows are under way at a time, so a few milliseconds there may be somebody else's.
",
        patience = human(extent.patience),
    )
}
