//! What a long chore tells while it runs: a heading per step, and a table at the end.

use std::time::{Duration, SystemTime};

/// The steps done so far, and how long each took.
pub struct Progress {
    began: SystemTime,
    planned: usize,
    done: Vec<Done>,
}

struct Done {
    name: String,
    took: Duration,
    verdict: &'static str,
}

impl Progress {
    /// Begins a chore of `planned` steps.
    pub fn begin(planned: usize) -> Self {
        Self { began: SystemTime::now(), planned, done: Vec::new() }
    }

    /// Announces the next step, runs it, and notes how it went.
    pub fn step<T, E>(&mut self, name: &str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let number = self.done.len() + 1;
        println!("\n== {number}/{} {name} ({} s so far)", self.planned, seconds(elapsed(self.began)));
        let began = SystemTime::now();
        let result = work();
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        self.done.push(Done { name: name.to_owned(), took: elapsed(began), verdict });
        result
    }

    /// Notes that a step is left out.
    pub fn skip(&mut self, name: &str) {
        self.done.push(Done { name: name.to_owned(), took: Duration::ZERO, verdict: "not run" });
    }

    /// The table of steps with their durations.
    pub fn summary(&self) -> String {
        let mut table = format!("{:<24}{:>9}\n", "step", "seconds");
        for Done { name, took, verdict } in &self.done {
            table.push_str(&format!("{name:<24}{:>9}  {verdict}\n", seconds(*took)));
        }
        table.push_str(&format!("{:<24}{:>9}\n", "total", seconds(elapsed(self.began))));
        table
    }
}

/// By the wall clock, which is good enough to show to people; if it was set back, zero.
fn elapsed(since: SystemTime) -> Duration {
    since.elapsed().unwrap_or_default()
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_shows_what_passed_what_failed_and_what_never_ran() {
        let mut progress = Progress::begin(3);
        assert_eq!(progress.step("format", || Ok::<_, ()>(7)), Ok(7));
        assert_eq!(progress.step("lint", || Err::<(), _>("no")), Err("no"));
        progress.skip("tests");
        let summary = progress.summary();
        let lines: Vec<Vec<&str>> = summary.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["step", "seconds"]);
        assert_eq!((lines[1][0], lines[1][2]), ("format", "ok"));
        assert_eq!((lines[2][0], lines[2][2]), ("lint", "FAILED"));
        assert_eq!(lines[3], ["tests", "0.0", "not", "run"]);
        assert_eq!(lines[4][0], "total");
    }
}
