//! Which promise must catch which planted bug.
//!
//! A bug that is found only because it happens to upset something else is not found. So each names
//! the promises that it breaks by its nature, and only their violation counts.

use tenure_core::Plant;

use crate::scene::Scene;

const EXCLUSION: &[&str] = &["S1", "S3", "S4"];

/// How the names of the promises begin that catch this bug.
#[must_use]
pub fn caught_by(plant: Plant) -> &'static [&'static str] {
    match plant {
        Plant::DeadlineFromReply
        | Plant::DriftIgnored
        | Plant::FailureExtendsDeadline
        | Plant::ClockJumpIgnored
        | Plant::PausesForgotten
        | Plant::StoreReopenKeepsPulse => &["S1", "S4"],
        Plant::StoreClockDecides
        | Plant::FirstSightTrusted
        | Plant::CreditAcrossSessions
        | Plant::SilenceFromSend
        | Plant::SilenceByOwnTtl
        | Plant::RenewalUnnoticed
        | Plant::HintIsTruth
        | Plant::ErrorMeansFree
        | Plant::StoreSkipsCompare => EXCLUSION,
        Plant::NoStopMargin => &["S4"],
        Plant::LateReplyAccepted => &["S5"],
        Plant::RenewalNotRetried | Plant::RenewalTooLate | Plant::StepsDownOnFailure => &["L3"],
        Plant::JeopardyUnsaid => &["jeopardy is said"],
        Plant::TakesOverAPollLater => &["L1"],
        Plant::UncertainClaimForgotten | Plant::StoreGrantsOvertaken => &["the withdrawn win nothing"],
        Plant::UncertainMeansWon | Plant::StoreChangeIgnored => &["S1", "S2", "S4"],
        Plant::ResignsBeforeJoin | Plant::ClosesBeforeJoin | Plant::ReopensBeforeJoin => &["S6"],
        Plant::LeadsOnAfterResign | Plant::StoreResignsAnyone | Plant::StoreResignsLate => {
            &["S1", "S4", "S6"]
        }
        Plant::RestartInheritsSession => &["one process per term"],
        Plant::SessionLossIgnored => &["no session, no leadership"],
        Plant::RegressionIgnored => &["S1", "S2", "S4", "S5"],
        Plant::OldLookCounts => &["no false alarm"],
        Plant::HighestTermUntold | Plant::StoreKeepsTerm => &["S2"],
        Plant::StoreResignResetsTerm | Plant::StoreDeleteResetsTerm => &["S2", "L1"],
        Plant::TakeoverDelaySkipped => &["the take-over delay is kept"],
        Plant::IneligibleStands => &["only the eligible lead"],
        Plant::PriorityIgnored => &["higher priority first"],
        Plant::StoreSuccessorIgnored => &["the next candidate succeeds"],
        Plant::EndUnnoticed => &["the end is told"],
        Plant::PetitionIgnored | Plant::GrantUnnoticed => &["L2"],
        Plant::UnwellStaysInLine => &["L1", "L2"],
        Plant::HealthIgnored => &["the unwell do not lead"],
        Plant::RenewsEachElection => &["one write per interval"],
        Plant::StoreRetiresNode => &["S3", "no leader is retired"],
        Plant::MembersJudgedEarly => &["the silent were silent for a ttl"],
        Plant::MembersNeverRetired => &["the dead are retired"],
        Plant::FailbackIgnoresPriority | Plant::FailbackWithdrawn => &["failback is for the preferred"],
        Plant::FailbackAsksOnce => &["the preferred lead"],
        Plant::StoreForgetsRetirement => &["the retired stay retired"],
        Plant::StoreSkipsEvent => &["S8"],
        Plant::PartitionAssignedBeforeRelease
        | Plant::PartitionReleasedEarly
        | Plant::PartitionDeadlineIgnored
        | Plant::PartitionsOutliveSession
        | Plant::PartitionsReopenEarly
        | Plant::PartitionsOpenedAsleep
        | Plant::PartitionStaleReadHeeded
        | Plant::PartitionLedgerNotLoaded
        | Plant::PartitionOldTermAccepted
        | Plant::PartitionLateReleaseAccepted => &["S7"],
        Plant::PartitionLapseJudgedEarly => &["S3", "S7"],
        Plant::PartitionRevokeUnheeded => &["partitions are owned"],
        Plant::PartitionMovesUnlimited => &["few moves at a time"],
    }
}

/// The scene in which this bug has many occasions to show, if the mix of all faults gives it few.
#[must_use]
pub fn scene(plant: Plant) -> Option<Scene> {
    match plant {
        Plant::DeadlineFromReply => Some(Scene::FadingLinks),
        Plant::DriftIgnored | Plant::NoStopMargin => Some(Scene::ClocksApart),
        Plant::StoreClockDecides | Plant::FirstSightTrusted | Plant::CreditAcrossSessions => {
            Some(Scene::SteppedClock)
        }
        Plant::SilenceFromSend => Some(Scene::SlowAnswers),
        Plant::StoreChangeIgnored => Some(Scene::RolledBack),
        Plant::StoreReopenKeepsPulse => Some(Scene::OpenedTwice),
        Plant::FailbackWithdrawn => Some(Scene::Withdrawals),
        _ => None,
    }
}

/// Whether the violation of this promise proves that the bug was found.
#[must_use]
pub fn proves(plant: Plant, promise: &str) -> bool {
    caught_by(plant).iter().any(|name| promise.starts_with(name))
}
