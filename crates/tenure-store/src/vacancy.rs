//! Since when an election had no leader, from what was recorded of the end of its term.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::history::{EventKind, EventRecord};

/// When a leader ceased to lead, by the wall clocks of those who wrote the history.
///
/// After a resignation that is when the event was recorded. The loss of a silent leader is recorded by its successor,
/// long after the fact: the leader led on for as long as its lease lasted, which is a ttl after its last renewal, unless
/// its process died before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermEnd {
    /// It led until then for certain: its last renewal, if nothing is known of it since.
    pub earliest: SystemTime,
    /// It led no longer than that: the end of its lease.
    pub latest: SystemTime,
}

/// For how long nobody led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacancy {
    /// From the end of the lease.
    pub at_least: Duration,
    /// From the last renewal, if nothing was known of the leader since.
    pub at_most: Duration,
}

impl TermEnd {
    /// When the term ended whose end this event records; `None` for any other event.
    #[must_use]
    pub fn of(event: &EventRecord) -> Option<Self> {
        if !matches!(event.kind, EventKind::LeaderLost | EventKind::LeaderResigned) {
            return None;
        }
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let length = |key: &str| data[key].as_u64().map(Duration::from_millis);
        let Some(silent) = length("silent_ms") else {
            return Some(Self { earliest: event.time, latest: event.time });
        };
        let before = |length: Duration| event.time.checked_sub(length).unwrap_or(event.time);
        // Of a lease that was given up before its end, nobody knows when.
        let overdue = length("ttl_ms").map_or(Duration::ZERO, |ttl| silent.saturating_sub(ttl));
        let latest = before(overdue);
        // The same process is back, so it was alive, and led until its lease ended.
        let lived_on = data["reopened"] == true && overdue > Duration::ZERO;
        Some(Self { earliest: if lived_on { latest } else { before(silent) }, latest })
    }

    /// How long nobody led until the next grant.
    #[must_use]
    pub fn until(self, granted: SystemTime) -> Vacancy {
        let since = |end: SystemTime| granted.duration_since(end).unwrap_or_default();
        Vacancy { at_least: since(self.latest), at_most: since(self.earliest) }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::Term;

    use super::*;

    /// An event that was recorded 100 s after the epoch, and a grant 24 ms later.
    fn vacancy(kind: EventKind, data: &str) -> Option<(u128, u128)> {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let event = EventRecord {
            id: 1,
            sequence: 1,
            time,
            kind,
            election: None,
            node: None,
            term: Term::new(1),
            data: data.to_owned(),
        };
        let Vacancy { at_least, at_most } = TermEnd::of(&event)?.until(time + Duration::from_millis(24));
        Some((at_least.as_millis(), at_most.as_millis()))
    }

    #[test]
    fn a_gap_counts_from_the_end_of_the_lease_and_not_from_its_record() {
        let (lost, resigned) = (EventKind::LeaderLost, EventKind::LeaderResigned);
        assert_eq!(vacancy(resigned, "{}"), Some((24, 24)));
        assert_eq!(vacancy(lost, r#"{"reason":"program_failed","exit_code":1}"#), Some((24, 24)));
        // The store was away: the same process leads again.
        let outage = r#"{"reason":"lapsed","silent_ms":17776,"ttl_ms":4000,"reopened":true}"#;
        assert_eq!(vacancy(lost, outage), Some((13_800, 13_800)));
        // It may have died at any time after its last renewal.
        let died = r#"{"reason":"lapsed","silent_ms":4100,"ttl_ms":4000}"#;
        assert_eq!(vacancy(lost, died), Some((124, 4_124)));
        // It gave its lease up before the end, and nobody knows when.
        let early = r#"{"reason":"superseded","silent_ms":900,"ttl_ms":4000,"reopened":true}"#;
        assert_eq!(vacancy(lost, early), Some((24, 924)));
        // Recorded by an earlier version.
        assert_eq!(vacancy(lost, r#"{"reason":"lapsed","silent_ms":4100}"#), Some((24, 4_124)));
        assert_eq!(vacancy(EventKind::LeaderElected, "{}"), None);
        // Nonsense that somebody wrote by hand.
        assert!(vacancy(lost, r#"{"silent_ms":18446744073709551615,"ttl_ms":-1}"#).is_some());
        assert_eq!(vacancy(lost, "nonsense"), Some((24, 24)));
    }
}
