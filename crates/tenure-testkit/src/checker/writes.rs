//! A fenced register takes no write below the highest term that it has taken.

use std::collections::HashMap;

use super::log::Write;

/// A write was accepted although a later leader had already written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleWrite {
    /// The accepted write with the highest term before.
    pub highest: Write,
    /// The one that came too late, and was accepted all the same.
    pub stale: Write,
}

/// Finds every accepted write below the highest accepted before it. The writes are in the order
/// in which the register judged them.
#[must_use]
pub fn check_writes(writes: &[Write]) -> Vec<StaleWrite> {
    let mut highest: HashMap<&str, &Write> = HashMap::new();
    let mut stale = Vec::new();
    for write in writes.iter().filter(|write| write.accepted) {
        match highest.get(write.election.as_str()) {
            Some(&before) if before.term > write.term => {
                stale.push(StaleWrite { highest: before.clone(), stale: write.clone() });
            }
            _ => {
                highest.insert(&write.election, write);
            }
        }
    }
    stale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(node: &str, term: u64, accepted: bool) -> Write {
        Write { election: "e".into(), node: node.into(), pid: 1, term, accepted }
    }

    #[test]
    fn rising_and_repeated_terms_are_as_they_should_be() {
        let log = [write("a", 1, true), write("a", 1, true), write("b", 4, true), write("a", 1, false)];
        assert_eq!(check_writes(&log), []);
    }

    #[test]
    fn an_accepted_write_of_an_earlier_leader_is_found() {
        let (newer, late) = (write("b", 4, true), write("a", 1, true));
        let found = check_writes(&[write("a", 1, true), newer.clone(), late.clone(), late.clone()]);
        assert_eq!(found, vec![StaleWrite { highest: newer, stale: late }; 2]);
    }

    #[test]
    fn a_refused_write_raises_nothing() {
        assert_eq!(check_writes(&[write("b", 9, false), write("a", 1, true)]), []);
    }

    #[test]
    fn elections_are_judged_apart() {
        let elsewhere = Write { election: "f".into(), ..write("b", 9, true) };
        assert_eq!(check_writes(&[elsewhere, write("a", 1, true)]), []);
    }
}
