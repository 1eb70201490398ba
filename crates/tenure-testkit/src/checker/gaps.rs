//! How long nobody led between one leader and the next: what L1 and L2 bound.

use std::time::Duration;

use super::leaderships::by_election;
use super::log::Leadership;

/// The time between two consecutive leaderships of one election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Who led before.
    pub before: Leadership,
    /// Who led next.
    pub after: Leadership,
    /// How long nobody led; zero if the next began at once (or, as a violation, too early).
    pub length: Duration,
}

/// All gaps, election by election in the order of time. The wait for the first leader is none.
#[must_use]
pub fn gaps(leaderships: &[Leadership]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    for in_time in by_election(leaderships).values() {
        // The last to end, not the last to begin: overlaps must not invent gaps.
        let mut last: Option<&Leadership> = None;
        for &next in in_time {
            if let Some(before) = last {
                let length = Duration::from_nanos(next.from.saturating_sub(before.until));
                gaps.push(Gap { before: before.clone(), after: next.clone(), length });
            }
            if last.is_none_or(|before| before.until <= next.until) {
                last = Some(next);
            }
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn led(election: &str, term: u64, from: u64, until: u64) -> Leadership {
        Leadership { election: election.into(), node: format!("n{term}"), pid: 1, term, from, until }
    }

    fn lengths(log: &[Leadership]) -> Vec<u128> {
        gaps(log).iter().map(|gap| gap.length.as_nanos()).collect()
    }

    #[test]
    fn gaps_are_measured_between_consecutive_leaders_of_each_election() {
        let log = [
            led("f", 1, 5, 6),
            led("e", 2, 25, 30),
            led("e", 1, 10, 20),
            led("e", 3, 30, 40),
            led("f", 2, 106, 107),
        ];
        assert_eq!(lengths(&log), [5, 0, 100]);
        assert_eq!(gaps(&log)[0].before, log[2]);
        assert_eq!(gaps(&log)[0].after, log[1]);
    }

    #[test]
    fn an_overlap_makes_no_gap() {
        assert_eq!(lengths(&[led("e", 1, 0, 100), led("e", 2, 10, 20), led("e", 3, 110, 120)]), [0, 10]);
        assert_eq!(lengths(&[led("e", 1, 0, 100)]), [0; 0]);
    }
}
