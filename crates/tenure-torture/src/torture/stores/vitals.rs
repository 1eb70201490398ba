//! What a process takes of memory and descriptors, early in its life and late.

use std::time::Duration;

use tenure_core::Instant;

/// Before that it is still warming up, as a rule.
const WARM: Duration = Duration::from_secs(10);
/// Not looked at more often.
const EVERY: Duration = Duration::from_secs(1);

/// The pulse of one member; it begins anew with every process.
#[derive(Clone, Debug)]
pub struct Vitals {
    warm: Duration,
    since: Option<Instant>,
    samples: Vec<Sample>,
}

impl Default for Vitals {
    fn default() -> Self {
        Self::warm_after(WARM)
    }
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    kibibytes: u64,
    descriptors: u64,
}

impl Vitals {
    pub const fn warm_after(warm: Duration) -> Self {
        Self { warm, since: None, samples: Vec::new() }
    }

    pub fn feel(&mut self, pid: u32, now: Instant) {
        let since = *self.since.get_or_insert(now);
        if now.since(since) < self.warm || self.samples.last().is_some_and(|last| now.since(last.at) < EVERY)
        {
            return;
        }
        self.samples.extend(sample(pid, now));
    }

    /// By how much memory or descriptors grew, whichever grew more: what was usual in the last fifth of the time, in
    /// relation to the first. A single look may meet a moment in which much is asked.
    pub fn share(&self) -> Option<f64> {
        let fifth = self.samples.len().div_ceil(5);
        let (early, late) = (self.samples.get(..fifth)?, self.samples.get(self.samples.len() - fifth..)?);
        let grew = |what: fn(&Sample) -> u64| Some(median(late, what)? / median(early, what)? - 1.0);
        Some(grew(|sample| sample.kibibytes)?.max(grew(|sample| sample.descriptors)?))
    }

    /// How long it was watched.
    pub fn span(&self) -> Duration {
        let ends = self.samples.first().zip(self.samples.last());
        ends.map_or(Duration::ZERO, |(first, last)| last.at.since(first.at))
    }

    /// For people: what it took first, and last.
    pub fn growth(&self) -> String {
        let Some((first, last)) = self.samples.first().zip(self.samples.last()) else {
            return String::from("not measured: it never lived for long enough");
        };
        format!(
            "memory {:.1} → {:.1} MiB, descriptors {} → {}, in {} s",
            mebibytes(first.kibibytes),
            mebibytes(last.kibibytes),
            first.descriptors,
            last.descriptors,
            last.at.since(first.at).as_secs(),
        )
    }
}

fn median(samples: &[Sample], what: fn(&Sample) -> u64) -> Option<f64> {
    let mut all: Vec<u64> = samples.iter().map(what).collect();
    all.sort_unstable();
    all.get(all.len() / 2).and_then(|&middle| u32::try_from(middle).ok()).map(f64::from)
}

fn mebibytes(kibibytes: u64) -> f64 {
    Duration::from_millis(kibibytes).as_secs_f64() * 1000.0 / 1024.0
}

fn sample(pid: u32, at: Instant) -> Option<Sample> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes = anonymous.split_whitespace().next()?.parse().ok()?;
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    let descriptors = u64::try_from(descriptors).ok()?;
    Some(Sample { at, kibibytes, descriptors })
}
