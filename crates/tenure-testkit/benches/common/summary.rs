//! Results against targets: a line each, here and in the table at the end of `cargo xtask bench`.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use super::samples::human;
use super::{Bench, Outcome};

impl Bench {
    /// A figure that has a target which it must not exceed.
    pub fn judge(&self, what: &str, measured: Duration, target: Duration) -> Outcome<()> {
        let verdict = match measured.checked_sub(target) {
            None | Some(Duration::ZERO) => {
                let share = measured.as_secs_f64() / target.as_secs_f64() * 100.0;
                format!("met ({share:.0} % of it)")
            }
            Some(excess) => format!("MISSED by {}", human(excess)),
        };
        self.conclude(what, &human(measured), &format!("≤ {}", human(target)), &verdict)
    }

    /// A figure without a target, beside what bounds it from below.
    pub fn tell(&self, what: &str, measured: &str, floor: &str) -> Outcome<()> {
        println!("→ {what}: {measured} ({floor})");
        self.note(what, measured, "–", floor)
    }

    /// A result in words.
    pub fn conclude(&self, what: &str, measured: &str, target: &str, verdict: &str) -> Outcome<()> {
        println!("→ {what}: {measured}, target {target}: {verdict}");
        self.note(what, measured, target, verdict)
    }

    fn note(&self, what: &str, measured: &str, target: &str, verdict: &str) -> Outcome<()> {
        if let Some(summary) = &self.summary {
            let mut file = OpenOptions::new().create(true).append(true).open(summary)?;
            writeln!(file, "{what}\t{measured}\t{target}\t{verdict}")?;
        }
        Ok(())
    }
}
