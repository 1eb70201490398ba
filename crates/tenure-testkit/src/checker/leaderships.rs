//! Leaderships of one election never overlap between processes, and their terms are unique and
//! rise.

use std::collections::{BTreeMap, HashMap};

use super::log::Leadership;

/// What nodes did that they must never do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeadershipViolation {
    /// Two processes led at the same instant (against S1).
    Overlap {
        /// The one that began first.
        first: Leadership,
        /// The one that began before the first had ended.
        second: Leadership,
    },
    /// One term was granted twice (against S2).
    DuplicateTerm {
        /// Who led under it first.
        first: Leadership,
        /// Who led under it again.
        second: Leadership,
    },
    /// A later leadership has a lower term (against S2).
    FallingTerm {
        /// The highest before.
        before: Leadership,
        /// The later one, which is lower.
        after: Leadership,
    },
    /// It ended before it began: the log itself is not to be trusted.
    Backwards(Leadership),
}

/// Finds every violation among the leaderships, in any order, of any number of elections.
#[must_use]
pub fn check_leaderships(leaderships: &[Leadership]) -> Vec<LeadershipViolation> {
    let mut violations = Vec::new();
    for one in leaderships.iter().filter(|one| one.until < one.from) {
        violations.push(LeadershipViolation::Backwards(one.clone()));
    }
    for in_time in by_election(leaderships).values() {
        overlaps(in_time, &mut violations);
        terms(in_time, &mut violations);
    }
    violations
}

/// The leaderships of each election, by when they began.
pub(super) fn by_election(leaderships: &[Leadership]) -> BTreeMap<&str, Vec<&Leadership>> {
    let mut elections: BTreeMap<&str, Vec<&Leadership>> = BTreeMap::new();
    for one in leaderships {
        elections.entry(&one.election).or_default().push(one);
    }
    for in_time in elections.values_mut() {
        in_time.sort_by_key(|one| (one.from, one.until, one.term));
    }
    elections
}

/// A long leadership may overlap many short ones, so all that are still open are compared, not
/// only neighbours. An instant that is one's end and another's beginning is no overlap.
fn overlaps(in_time: &[&Leadership], violations: &mut Vec<LeadershipViolation>) {
    let mut open: Vec<&Leadership> = Vec::new();
    for &second in in_time {
        open.retain(|first| first.until > second.from);
        // An empty leadership at an instant when another leads never passed a check.
        if second.until > second.from {
            for &first in open.iter().filter(|first| !first.same_process(second)) {
                violations
                    .push(LeadershipViolation::Overlap { first: first.clone(), second: second.clone() });
            }
            open.push(second);
        }
    }
}

fn terms(in_time: &[&Leadership], violations: &mut Vec<LeadershipViolation>) {
    let mut granted: HashMap<u64, &Leadership> = HashMap::new();
    let mut highest: Option<&Leadership> = None;
    for &one in in_time {
        if let Some(&first) = granted.get(&one.term) {
            violations.push(LeadershipViolation::DuplicateTerm { first: first.clone(), second: one.clone() });
        } else if let Some(before) = highest.filter(|before| before.term > one.term) {
            violations.push(LeadershipViolation::FallingTerm { before: before.clone(), after: one.clone() });
        }
        granted.entry(one.term).or_insert(one);
        if highest.is_none_or(|before| before.term < one.term) {
            highest = Some(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LeadershipViolation::*;
    use super::*;

    fn led(node: &str, pid: u32, term: u64, from: u64, until: u64) -> Leadership {
        Leadership { election: "e".into(), node: node.into(), pid, term, from, until }
    }

    #[test]
    fn one_after_another_is_as_it_should_be() {
        let log =
            [led("b", 2, 2, 20, 30), led("a", 1, 1, 10, 20), led("a", 1, 5, 31, 40), led("a", 9, 6, 40, 50)];
        assert_eq!(check_leaderships(&log), []);
        assert_eq!(check_leaderships(&[]), []);
    }

    #[test]
    fn two_processes_at_one_instant_are_found() {
        let (first, second) = (led("a", 1, 1, 10, 21), led("b", 2, 2, 20, 30));
        let found = check_leaderships(&[second.clone(), first.clone()]);
        assert_eq!(found, [Overlap { first, second }]);
    }

    #[test]
    fn a_restarted_process_of_one_node_is_another_process() {
        let (first, second) = (led("a", 1, 1, 10, 20), led("a", 2, 2, 15, 30));
        assert_eq!(check_leaderships(&[first.clone(), second.clone()]), [Overlap { first, second }]);
    }

    #[test]
    fn one_pid_on_two_nodes_is_two_processes() {
        let (first, second) = (led("a", 1, 1, 10, 20), led("b", 1, 2, 15, 30));
        assert_eq!(check_leaderships(&[first.clone(), second.clone()]), [Overlap { first, second }]);
    }

    #[test]
    fn a_long_leadership_is_compared_with_all_that_fall_into_it() {
        let long = led("a", 1, 1, 0, 100);
        let shorts = [led("a", 1, 2, 10, 20), led("b", 2, 3, 30, 40), led("c", 3, 4, 99, 120)];
        let mut log = shorts.to_vec();
        log.push(long.clone());
        let found = check_leaderships(&log);
        let expected = shorts[1..].iter().map(|short| Overlap { first: long.clone(), second: short.clone() });
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    #[test]
    fn leaderships_of_the_same_instant_overlap_unless_they_are_empty() {
        let (first, second) = (led("a", 1, 1, 10, 20), led("b", 2, 2, 10, 20));
        assert_eq!(check_leaderships(&[first.clone(), second.clone()]), [Overlap { first, second }]);
        assert_eq!(check_leaderships(&[led("a", 1, 1, 10, 20), led("b", 2, 2, 15, 15)]), []);
    }

    #[test]
    fn elections_are_judged_apart() {
        let elsewhere = Leadership { election: "f".into(), ..led("b", 2, 1, 10, 20) };
        assert_eq!(check_leaderships(&[led("a", 1, 1, 10, 20), elsewhere]), []);
    }

    #[test]
    fn a_term_granted_twice_is_found_even_for_one_process_and_far_apart() {
        let (first, second) = (led("a", 1, 4, 10, 20), led("a", 1, 4, 50, 60));
        let found = check_leaderships(&[first.clone(), led("b", 2, 5, 30, 40), second.clone()]);
        assert_eq!(found, [DuplicateTerm { first, second }]);
    }

    #[test]
    fn a_term_that_falls_is_found_even_if_it_was_never_seen() {
        let (before, after) = (led("a", 1, 9, 10, 20), led("b", 2, 3, 30, 40));
        let rising = led("b", 2, 4, 50, 60);
        let found = check_leaderships(&[before.clone(), after.clone(), rising.clone()]);
        assert_eq!(
            found,
            [FallingTerm { before: before.clone(), after }, FallingTerm { before, after: rising }]
        );
    }

    #[test]
    fn a_leadership_that_ends_before_it_begins_is_found() {
        let wrong = led("a", 1, 1, 20, 10);
        assert_eq!(check_leaderships(std::slice::from_ref(&wrong)), [Backwards(wrong)]);
    }
}
