//! Whether to stand again after the program has ended, and when.

use std::time::Duration;

use super::orders::End;
use crate::cli::Restart;

/// The first pause; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// A program that ran for so long was well: its next failure is a new story.
const WELL: Duration = Duration::from_secs(10);

/// Counts failures in a row.
pub struct Backoff {
    restart: Restart,
    in_a_row: u32,
}

impl Backoff {
    pub const fn new(restart: Restart) -> Self {
        Self { restart, in_a_row: 0 }
    }

    /// How long to wait before standing again; `None`: not at all.
    pub fn after(&mut self, end: End, ran: Duration) -> Option<Duration> {
        let again = match self.restart {
            Restart::Never => false,
            Restart::OnFailure => end != End::Code(0),
            Restart::Always => true,
        };
        if !again {
            return None;
        }
        if ran >= WELL {
            self.in_a_row = 0;
        }
        let pause = FIRST.saturating_mul(1 << self.in_a_row.min(10)).min(LONGEST);
        self.in_a_row += 1;
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_grow_up_to_a_limit_and_start_anew_after_a_long_run() {
        let mut backoff = Backoff::new(Restart::Always);
        let mut pauses = (0..9).map(|_| backoff.after(End::Code(0), SHORT).unwrap().as_millis());
        assert_eq!(pauses.by_ref().take(3).collect::<Vec<_>>(), [500, 1000, 2000]);
        assert_eq!(pauses.last(), Some(30_000));
        assert_eq!(backoff.after(End::Signal(9), WELL), Some(FIRST));
    }

    #[test]
    fn who_stands_again_is_a_matter_of_the_end() {
        let after = |restart, end| Backoff::new(restart).after(end, SHORT).is_some();
        assert!(!after(Restart::Never, End::Code(1)));
        assert!(!after(Restart::OnFailure, End::Code(0)));
        assert!(after(Restart::OnFailure, End::Signal(15)));
        assert!(after(Restart::Always, End::Code(0)));
    }
}
