//! Planted bugs: one small switch per way of getting the protocol wrong.
//!
//! They exist only so that the simulation can prove that it would notice. Without the feature
//! `plants` no switch can be on, and the compiler removes every trace of them.

macro_rules! plants {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Plant { $($(#[doc = $doc])+ $name),+ }

        impl Plant {
            /// Every planted bug.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }

            /// Whether it is a bug in how partitions are divided.
            #[must_use]
            pub fn is_about_partitions(self) -> bool {
                self.name().starts_with("Partition")
            }

            /// What is wrong with it.
            #[must_use]
            pub const fn describe(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+)),+ }
            }
        }
    };
}

plants! {
    /// The deadline counts from the reply instead of from before the send.
    DeadlineFromReply,
    /// The lease is not counted slowly: clocks are believed to run alike.
    DriftIgnored,
    /// No time is kept for the work to stop in.
    NoStopMargin,
    /// A reply that arrives after the deadline still moves it.
    LateReplyAccepted,
    /// A failed renewal moves the deadline too.
    FailureExtendsDeadline,
    /// A renewal that was given up is never tried again before the next interval.
    RenewalNotRetried,
    /// Renewal starts when almost nothing of the lease is left.
    RenewalTooLate,
    /// The leader steps down at the first failed renewal.
    StepsDownOnFailure,
    /// A leader whose renewals fail says nothing of it.
    JeopardyUnsaid,
    /// The store's word about the age of a pulse is believed although its clock was stepped.
    StoreClockDecides,
    /// The age of a pulse is believed at first sight.
    FirstSightTrusted,
    /// The age of a pulse is believed although the look before showed another session.
    CreditAcrossSessions,
    /// Silence counts from when the read was sent, not from when it was answered.
    SilenceFromSend,
    /// Silence is judged by the candidate's own ttl instead of the holder's.
    SilenceByOwnTtl,
    /// A renewal of the holder is not taken as a sign of life.
    RenewalUnnoticed,
    /// The follower learns of a lapse only at its next look.
    TakesOverAPollLater,
    /// A hint is taken for proof that the holder is gone.
    HintIsTruth,
    /// A claim that failed is taken for proof that the holder is gone.
    ErrorMeansFree,
    /// A claim whose outcome is unknown is forgotten instead of read back.
    UncertainClaimForgotten,
    /// A claim whose outcome is unknown is taken for a win.
    UncertainMeansWon,
    /// The lease is freed while the leader's work still runs.
    ResignsBeforeJoin,
    /// The session is closed while work still runs under it.
    ClosesBeforeJoin,
    /// A new session is opened while work of the old one still runs.
    ReopensBeforeJoin,
    /// A lease is given back but the candidate believes that it leads on.
    LeadsOnAfterResign,
    /// A restarted process takes up the session of its former life.
    RestartInheritsSession,
    /// The end of the session on the store is not taken as the end of leadership.
    SessionLossIgnored,
    /// Another store history answers, and nobody minds.
    StoreChangeIgnored,
    /// Terms go backwards, and nobody minds.
    RegressionIgnored,
    /// A look that was asked for before something was learned is held against it.
    OldLookCounts,
    /// A candidate keeps the highest term that it has seen to itself.
    HighestTermUntold,
    /// The wall clock leaps against the boot clock, and nobody minds.
    ClockJumpIgnored,
    /// Several short leaps of the wall clock within one lease are looked at one by one.
    PausesForgotten,
    /// The take-over delay is not kept.
    TakeoverDelaySkipped,
    /// A node that may not lead stands.
    IneligibleStands,
    /// A candidate of low priority does not leave the lease to a better one.
    PriorityIgnored,
    /// A candidate does not notice by its renewals that a lease was passed on to it.
    GrantUnnoticed,
    /// The end of an election is not noticed by its candidates.
    EndUnnoticed,
    /// A leader that is asked to resign does not.
    PetitionIgnored,
    /// A node whose application is unwell leads on.
    HealthIgnored,
    /// A candidate whose application is unwell keeps its place in the line.
    UnwellStaysInLine,
    /// Every election is renewed by a write of its own.
    RenewsEachElection,
    /// Store: a take-over keeps the old term.
    StoreKeepsTerm,
    /// Store: resigning starts the terms anew.
    StoreResignResetsTerm,
    /// Store: ending an election starts its terms anew.
    StoreDeleteResetsTerm,
    /// Store: a take-over is granted although the holder has renewed since.
    StoreSkipsCompare,
    /// Store: a resignation frees whatever lease there is.
    StoreResignsAnyone,
    /// Store: a resignation that was overtaken by a later claim frees the lease of that claim.
    StoreResignsLate,
    /// Store: a lease that is handed over to a named candidate goes to the first in line.
    StoreSuccessorIgnored,
    /// Store: a claim that was overtaken by its resignation is granted.
    StoreGrantsOvertaken,
    /// Store: a repeated opening is confirmed without being a sign of life.
    StoreReopenKeepsPulse,
    /// Store: a retired session may go on renewing and claiming.
    StoreForgetsRetirement,
    /// Store: a loss is not written into the history.
    StoreSkipsEvent,
    /// Store: whoever has a silent session retired ends whatever session its node has by now.
    StoreRetiresNode,
    /// Members: a node is taken for dead after half of its ttl.
    MembersJudgedEarly,
    /// Members: the leader leaves nodes that fell silent as they are.
    MembersNeverRetired,
    /// Failback: a leader is asked to make way whatever its priority.
    FailbackIgnoresPriority,
    /// Failback: a leader is asked only once, even if the request was lost.
    FailbackAsksOnce,
    /// Failback: a node that has withdrawn still asks.
    FailbackWithdrawn,
    /// Partitions: given to another while its owner works, by a coordinator and a store that do not mind.
    PartitionAssignedBeforeRelease,
    /// Partitions: a worker's session is taken for dead after half of its ttl.
    PartitionLapseJudgedEarly,
    /// Partitions: a worker acknowledges a revocation while its work still runs.
    PartitionReleasedEarly,
    /// Partitions: a worker's check ignores the deadline of its session.
    PartitionDeadlineIgnored,
    /// Partitions: a worker goes on after its session is over.
    PartitionsOutliveSession,
    /// Partitions: a new session is opened while work on partitions of the old one still runs.
    PartitionsReopenEarly,
    /// Partitions: a session that was opened while its machine was frozen is taken for fresh.
    PartitionsOpenedAsleep,
    /// Partitions: a worker does not notice that a partition is revoked.
    PartitionRevokeUnheeded,
    /// Partitions: a worker acts upon an answer that it has given up waiting for.
    PartitionStaleReadHeeded,
    /// Partitions: a new coordinator begins with an empty ledger, and the store takes its word.
    PartitionLedgerNotLoaded,
    /// Partitions: more are moved at a time than allowed.
    PartitionMovesUnlimited,
    /// Partitions, store: what a coordinator of an older term publishes is accepted.
    PartitionOldTermAccepted,
    /// Partitions, store: an acknowledgement of an older revision makes a partition vacant.
    PartitionLateReleaseAccepted,
}

/// Which bug is planted, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    #[cfg(feature = "plants")]
    plant: Option<Plant>,
}

impl Planted {
    /// Plants this bug.
    #[cfg(feature = "plants")]
    #[must_use]
    pub const fn new(plant: Option<Plant>) -> Self {
        Self { plant }
    }

    /// Whether this bug is planted.
    #[inline]
    #[must_use]
    pub fn has(self, plant: Plant) -> bool {
        #[cfg(feature = "plants")]
        return self.plant == Some(plant);
        #[cfg(not(feature = "plants"))]
        {
            let _ = plant;
            false
        }
    }
}
