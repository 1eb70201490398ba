//! Whether two terms were ever served at once, and whether anybody was left behind.

use std::collections::BTreeMap;
use std::path::Path;

use tenure_testkit::checker::{Leadership, check_leaderships};

use crate::Outcome;
use crate::crew::{Crew, processes};
use crate::program;

pub struct Verdict {
    pub terms: usize,
    pub violations: Vec<String>,
    pub orphans: Vec<u32>,
}

pub fn judge(crew: &Crew) -> Outcome<Verdict> {
    let served = served(&crew.log())?;
    let violations = check_leaderships(&served).iter().map(|violation| format!("{violation:?}")).collect();
    Ok(Verdict { terms: served.len(), violations, orphans: orphans(&crew.log()) })
}

/// How many terms were served so far.
pub fn terms(log: &Path) -> Outcome<usize> {
    Ok(served(log)?.len())
}

/// From the first to the last sign of life under each term of each node: of the program and of its
/// descendant together, since the lease is given away only when both are gone.
fn served(log: &Path) -> Outcome<Vec<Leadership>> {
    let text = match std::fs::read_to_string(log) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut served: BTreeMap<(u64, &str), Leadership> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, term, node, pid] = words[..] else {
            return Err(format!("line {} of the log is torn: `{line}`", number + 1).into());
        };
        let (at, term) = (at.parse()?, term.parse()?);
        let one = served.entry((term, node)).or_insert(Leadership {
            election: String::from("torture"),
            node: node.to_owned(),
            pid: pid.parse()?,
            term,
            from: at,
            until: at,
        });
        (one.from, one.until) = (one.from.min(at), one.until.max(at));
    }
    Ok(served.into_values().collect())
}

/// Programs that nobody guards any more: everybody has been dismissed.
fn orphans(log: &Path) -> Vec<u32> {
    let log = log.display().to_string();
    processes()
        .filter(|process| {
            let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).into_owned();
            let mut words = words.split('\0');
            words.any(|word| word == program::WORD) && words.any(|word| word == log)
        })
        .collect()
}
