//! Worlds in which a planted bug has many occasions to show.
//!
//! Some bugs show only if two or three things meet that seldom do: the mix of all faults finds them by luck, and loses
//! them as soon as anything changes what a seed means. So the search for such a bug sets the scene: it chooses the
//! clocks and the faults that the bug is about, and leaves the rest to the seed. The real protocol must survive these
//! worlds like all others.

use tenure_core::{Dice, ExpiryJudge};

use crate::config::{Ages, Config, pick};
use crate::fault::{self, Fault, Kind};

/// What a search changes about the world of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scene {
    /// The links of leaders die slowly, and clocks leave nothing to spare.
    FadingLinks,
    /// The clocks of nodes differ as much as they may, and leaders are cut off.
    ClocksApart,
    /// The store's clock is stepped, also when the lease changes hands, and leaders are cut off.
    SteppedClock,
    /// Candidates are answered late, leaders are cut off, and clocks leave nothing to spare.
    SlowAnswers,
    /// The store is put back again and again, and says so, while leases change hands.
    RolledBack,
    /// The answers to the first requests for a session are lost, and whoever is elected first is cut off.
    OpenedTwice,
    /// A candidate of higher priority stands behind a leader that it would ask to make way, and withdraws.
    Withdrawals,
}

impl Scene {
    /// Every scene.
    pub const ALL: &'static [Self] = &[
        Self::FadingLinks,
        Self::ClocksApart,
        Self::SteppedClock,
        Self::SlowAnswers,
        Self::RolledBack,
        Self::OpenedTwice,
        Self::Withdrawals,
    ];

    /// Sets it.
    pub(crate) fn set(self, config: &mut Config) {
        let mut dice = Dice::new(config.seed ^ 0x5ce4_e5e7);
        match self {
            Self::FadingLinks => {
                set_rates(config, 0, &mut dice);
                config.faults = fault::plan_of(config, &[Kind::Fade], &mut dice);
                config.aimed = true;
            }
            Self::ClocksApart => {
                // One machine has one clock.
                if config.ages == Ages::Exact {
                    config.ages = Ages::Told;
                }
                set_rates(config, pick(&mut dice, &[100, 200]), &mut dice);
                config.faults = fault::plan_of(config, &[Kind::Cut, Kind::CutRequests], &mut dice);
                config.aimed = true;
            }
            Self::SteppedClock => {
                // Exact ages are taken on the clock of the one machine, which is never stepped.
                config.ages = Ages::Told;
                config.judged_by_candidates();
                // Renewals are rare and looks frequent: a step falls between a renewal and the look that follows.
                for node in &mut config.nodes {
                    (node.renew_every, node.poll_every) = (node.ttl / 3, node.ttl / 12);
                    (node.eligible, node.persistent) = (true, true);
                }
                let kinds = [Kind::StoreStep, Kind::StepAtHandOver, Kind::StepAtHandOver, Kind::Cut];
                config.faults = fault::plan_of(config, &kinds, &mut dice);
                config.aimed = true;
            }
            Self::SlowAnswers => {
                config.judged_by_candidates();
                set_rates(config, 0, &mut dice);
                config.faults = fault::plan_of(config, &[Kind::Slow, Kind::Cut], &mut dice);
                config.aimed = true;
            }
            Self::RolledBack => {
                let kinds = [Kind::Rollback, Kind::Rollback, Kind::Resign, Kind::Cut];
                config.faults = fault::plan_of(config, &kinds, &mut dice);
                config.aimed = true;
            }
            Self::OpenedTwice => {
                // A candidate would time the session from when it has first seen it.
                config.capabilities.expiry = ExpiryJudge::Store;
                let lasts = config.ttl / 2 + dice.below(config.ttl / 4);
                let mute = Fault { at: 0, lasts, node: 0, election: 0, kind: Kind::StoreMute };
                config.faults.insert(0, mute);
                config.ambushed = true;
            }
            Self::Withdrawals => {
                let preferred = 1;
                for (number, node) in config.nodes.iter_mut().enumerate() {
                    node.failback = true;
                    node.priority = if number == preferred { 5 } else { 0 };
                }
                config.faults = come_back_and_withdraw(config, preferred, &mut dice);
            }
        }
    }
}

/// A node is away until another leads, comes back, and withdraws before it has stood for a ttl; again and again.
fn come_back_and_withdraw(config: &Config, node: usize, dice: &mut Dice) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut at = config.ttl + dice.below(config.ttl);
    loop {
        let lasts = config.ttl * 3 / 2 + dice.below(config.ttl);
        let withdraws = at + lasts + config.ttl * 3 / 4 + dice.below(config.ttl / 4);
        if withdraws >= config.calm_at {
            return faults;
        }
        let election = usize::try_from(dice.below(config.elections as u64)).unwrap_or(0);
        faults.push(Fault { at, lasts, node, election, kind: Kind::Crash });
        faults.push(Fault { at: withdraws, lasts: 0, node, election, kind: Kind::Withdraw });
        at = withdraws + config.ttl;
    }
}

/// Lets clocks differ by so many thousandths: every other one is fast, and the others are slow.
fn set_rates(config: &mut Config, drift: u16, dice: &mut Dice) {
    let (slow, fast) = (1000 - u64::from(drift), 1000 + u64::from(drift));
    config.drift = drift;
    config.store_rate = pick(dice, &[slow, fast]);
    let first = dice.below(2);
    for (node, number) in config.nodes.iter_mut().zip(first..) {
        node.rate = if number % 2 == 0 { slow } else { fast };
    }
}
