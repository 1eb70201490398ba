//! Durations, and what is told of many of them.

use std::fmt;
use std::time::Duration;

/// What was measured, round by round.
#[derive(Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    /// By the nearest rank: a duration that was measured, never one in between. With fewer than
    /// a hundred samples, the 99th percentile is the longest.
    pub fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, percent) in [("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)] {
            write!(f, "{name} {:>9}  ", human(self.percentile(percent)))?;
        }
        write!(f, "({} samples)", self.len())
    }
}

/// A line of a table of samples.
pub fn show(what: &str, samples: &Samples) {
    println!("{what:<52} {samples}");
}

/// A duration for people: three digits, and a unit.
pub fn human(duration: Duration) -> String {
    let nanos = duration.as_secs_f64() * 1e9;
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}
