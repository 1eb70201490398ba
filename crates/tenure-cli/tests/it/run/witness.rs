//! The program that is run in these tests: it says under which term it is alive, every few
//! milliseconds, on the clock that all processes of the machine share.
#![allow(dead_code, reason = "every test target uses its own part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tenure_store::clock;

/// Where the witness writes; also what makes this test a witness.
pub const LOG: &str = "WITNESS_LOG";
/// Set: it takes no notice of SIGTERM.
pub const DEAF: &str = "WITNESS_DEAF";

/// The words that start a witness.
pub fn command() -> Vec<String> {
    let me = std::env::current_exe().unwrap().display().to_string();
    // This test's own path, without the crate's name: each store has a module of its own.
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::plays_the_program");
    [me.as_str(), "--exact", &test, "--nocapture", "--quiet"].map(String::from).to_vec()
}

/// Not a test of its own: what the other tests run. Without its variable it has nothing to say.
#[test]
fn plays_the_program() {
    let Some(path) = std::env::var_os(LOG) else { return };
    if std::env::var_os(DEAF).is_some() {
        let ignored = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGTERM, ignored).unwrap();
    }
    let term = std::env::var("TENURE_TERM").unwrap();
    let node = std::env::var("TENURE_NODE").unwrap();
    let partition = std::env::var("TENURE_PARTITION").unwrap_or_default();
    let mut log = OpenOptions::new().create(true).append(true).open(path).unwrap();
    loop {
        say(&mut log, &term, &node, &partition);
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn say(log: &mut File, term: &str, node: &str, partition: &str) {
    let line = format!("{} {term} {node} {} {partition}\n", clock::now().as_nanos(), std::process::id());
    log.write_all(line.as_bytes()).unwrap();
}

/// A sign of life.
#[derive(Clone, Debug)]
pub struct Beat {
    pub at: u64,
    pub term: u64,
    pub node: String,
    pub pid: u32,
    /// If it works on one.
    pub partition: Option<u32>,
}

/// Everything that witnesses have said.
pub fn beats(log: &Path) -> Vec<Beat> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let parse = |line: &str| {
        let mut words = line.split(' ');
        Some(Beat {
            at: words.next()?.parse().ok()?,
            term: words.next()?.parse().ok()?,
            node: words.next()?.to_owned(),
            pid: words.next()?.parse().ok()?,
            partition: words.next()?.parse().ok(),
        })
    };
    text.lines().filter_map(parse).collect()
}

/// Demands that nobody was alive under a term once somebody was under a later one. Gives the terms.
pub fn no_overlap(log: &Path) -> Vec<u64> {
    no_overlap_in(beats(log).into_iter())
}

/// The same of every partition by itself. Gives how often each changed hands.
pub fn no_overlap_of_partitions(log: &Path) -> BTreeMap<u32, usize> {
    let all = beats(log);
    let numbers: BTreeSet<u32> = all.iter().filter_map(|beat| beat.partition).collect();
    let of = |number: u32| all.iter().filter(move |beat| beat.partition == Some(number)).cloned();
    numbers.into_iter().map(|number| (number, no_overlap_in(of(number)).len() - 1)).collect()
}

fn no_overlap_in(beats: impl Iterator<Item = Beat>) -> Vec<u64> {
    let mut spans: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for beat in beats {
        let span = spans.entry(beat.term).or_insert((beat.at, beat.at));
        *span = (span.0.min(beat.at), span.1.max(beat.at));
    }
    for (earlier, later) in spans.iter().zip(spans.iter().skip(1)) {
        assert!(
            earlier.1.1 < later.1.0,
            "terms {} and {} were served at once: {spans:?}",
            earlier.0,
            later.0
        );
    }
    spans.into_keys().collect()
}
