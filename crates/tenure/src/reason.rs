//! Reasons as numbers, so that they fit into an atomic word. 0 stands for none.

use tenure_core::Reason;

const ALL: [Reason; 15] = [
    Reason::Resigned,
    Reason::Asked,
    Reason::Lapsed,
    Reason::SessionLost,
    Reason::Superseded,
    Reason::StoreChanged,
    Reason::StoreRolledBack,
    Reason::ClockJumped,
    Reason::Unhealthy,
    Reason::Ended,
    Reason::Closing,
    Reason::DriverDied,
    Reason::Forked,
    Reason::NotElected,
    Reason::WorkFailed,
];

pub(crate) fn encode(reason: Reason) -> u64 {
    let position = ALL.iter().position(|&known| known == reason);
    // A reason newer than this table still ends the session; only its name is lost.
    position.map_or(u64::MAX, |index| index as u64 + 1)
}

pub(crate) fn decode(code: u64) -> Option<Reason> {
    let index = usize::try_from(code).ok()?.checked_sub(1)?;
    Some(ALL.get(index).copied().unwrap_or(Reason::SessionLost))
}

/// Whether the lease is still this node's after the loss, so that its work may take its time to
/// stop. Otherwise somebody else may be granted it as soon as the margin is used up.
pub(crate) fn lease_outlives(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Resigned
            | Reason::Asked
            | Reason::Closing
            | Reason::Ended
            | Reason::Unhealthy
            | Reason::WorkFailed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_survives_the_trip_through_a_number() {
        for reason in ALL {
            assert_eq!(decode(encode(reason)), Some(reason));
        }
        assert_eq!(decode(0), None);
        assert_eq!(decode(u64::MAX), Some(Reason::SessionLost));
    }
}
