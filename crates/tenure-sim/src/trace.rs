//! The trace of a run: always a hash, and a readable timeline when somebody wants to read it.

use crate::clock::Real;

/// What happened, as a number and, if kept, as lines.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// A trace; with `readable`, one that keeps lines.
    #[must_use]
    pub fn new(readable: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: readable.then(Vec::new) }
    }

    /// Folds a number into the hash.
    pub fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// Adds a line, if lines are kept.
    pub fn line(&mut self, at: Real, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            #[allow(clippy::cast_precision_loss, reason = "for people to read")]
            let seconds = at as f64 / 1e9;
            lines.push(format!("{seconds:>12.6}s  {}", text()));
        }
    }

    /// The hash so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines that were kept.
    #[must_use]
    pub fn lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}
