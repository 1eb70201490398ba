//! What goes wrong, and what users do. The whole schedule is made before the run, so that it can be
//! shrunk by leaving parts of it out.

use tenure_core::{Dice, News};

use crate::clock::Real;
use crate::config::{Ages, Config, pick};

/// Something that happens at a moment, for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub at: Real,
    /// For how long, where that means something.
    pub lasts: Real,
    /// To which node, where that means something.
    pub node: usize,
    /// In which election, where that means something.
    pub election: usize,
    /// What.
    pub kind: Kind,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A kind of fault, or of user's doing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind { $($(#[doc = $doc])+ $name),+ }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),+ }
            }
        }
    };
}

kinds! {
    /// The process is killed, and started again later.
    Crash,
    /// The process is stopped (SIGSTOP, a long collection, a suspended laptop).
    Pause,
    /// The process is stopped the moment it has asked for its next renewal.
    Nap,
    /// The machine is paused together with its boot clock; its wall clock is corrected afterwards.
    Freeze,
    /// The node is cut off, and its machine is paused in this way again and again, each time only briefly.
    Stutter,
    /// The machine is paused in this way the moment it has next asked for a session.
    Faint,
    /// The wall clock of the node is stepped.
    WallStep,
    /// Nothing passes between the node and the store.
    Cut,
    /// Requests of the node are lost; replies pass.
    CutRequests,
    /// Replies to the node are lost; requests pass.
    CutReplies,
    /// Every message of the node takes long, so that they overtake each other.
    Slow,
    /// The node's link dies slowly: first its messages take long, then none passes.
    Fade,
    /// Every request of the node arrives twice, the second time late.
    Duplicate,
    /// The store refuses everything.
    StoreRefuses,
    /// The store answers nothing, and does nothing.
    StoreHangs,
    /// The store does everything, and answers nothing.
    StoreMute,
    /// No hint reaches anybody.
    NoNews,
    /// The store's clock is stepped.
    StoreStep,
    /// The store's clock is put forward; soon after the leader resigns, and its successor is cut off once elected.
    StepAtHandOver,
    /// The store is put back to an earlier state, and says so by another identity.
    Rollback,
    /// The store is put back to an earlier state, and nothing tells.
    SilentRollback,
    /// The store forgets what it did of late, as a replica that lagged behind, and nothing tells.
    Forget,
    /// The application is unwell.
    Unwell,
    /// The leader resigns.
    Resign,
    /// The leader hands over to a named node.
    Transfer,
    /// A candidate withdraws.
    Withdraw,
    /// A candidate withdraws the moment it has next claimed.
    Rue,
    /// Somebody ends the election.
    Delete,
    /// Somebody asks the leader to make way, from outside.
    Petition,
    /// The node is closed, and started again later.
    Close,
    /// The node's work takes long to stop.
    Clumsy,
}

/// Makes the schedule of a run. Each run has its own small set of kinds, so that rare pairs meet.
#[must_use]
pub fn plan(config: &Config, dice: &mut Dice) -> Vec<Fault> {
    let possible: Vec<Kind> = Kind::ALL.iter().copied().filter(|kind| applies(*kind, config)).collect();
    let kinds: Vec<Kind> = (0..1 + dice.below(5)).map(|_| pick(dice, &possible)).collect();
    plan_of(config, &kinds, dice)
}

/// Makes a schedule of these kinds.
#[must_use]
pub(crate) fn plan_of(config: &Config, kinds: &[Kind], dice: &mut Dice) -> Vec<Fault> {
    let count = 1 + dice.below(config.calm_at / config.ttl + 6);
    let mut faults: Vec<Fault> = Vec::new();
    for _ in 0..count {
        let kind = pick(dice, kinds);
        let lasts = match dice.below(4) {
            0 => dice.below(config.ttl / 3),
            1 => dice.below(config.ttl),
            _ => dice.below(config.ttl * 5 / 2),
        };
        let mut at = dice.below(config.calm_at);
        let mut node = usize::try_from(dice.below(config.nodes.len() as u64)).unwrap_or(0);
        let election = usize::try_from(dice.below(config.elections as u64)).unwrap_or(0);
        // Misfortunes seldom come singly: the worst is two that meet.
        if let Some(last) = faults.last().filter(|_| dice.below(2) == 0) {
            at = (last.at + dice.below(config.ttl)).min(config.calm_at - 1);
            node = last.node;
        }
        let lasts = if kind == Kind::Fade { lasts + config.ttl * 3 / 2 } else { lasts };
        faults.push(Fault { at, lasts, node, election, kind });
    }
    faults.sort_by_key(|fault| fault.at);
    space_out(&mut faults, config);
    faults
}

/// A preferred candidate withdraws, perhaps while it stands behind a leader of lower priority; and another cannot reach
/// the store at the end, perhaps when it has just asked such a leader to make way.
pub fn upset_failback(config: &mut Config, dice: &mut Dice) {
    let highest = config.nodes.iter().map(|node| node.priority).max();
    let preferred =
        |node: &usize| config.nodes[*node].failback && Some(config.nodes[*node].priority) == highest;
    let preferred: Vec<usize> = (0..config.nodes.len()).filter(preferred).collect();
    if preferred.is_empty() {
        return;
    }
    for kind in [Kind::Withdraw, Kind::Withdraw, Kind::CutRequests] {
        let (late, lasts) = (dice.below(config.ttl * 2), config.ttl * 2);
        let at = if kind == Kind::Withdraw { dice.below(config.calm_at) } else { config.calm_at - late };
        let election = usize::try_from(dice.below(config.elections as u64)).unwrap_or(0);
        config.faults.push(Fault { at, lasts, node: pick(dice, &preferred), election, kind });
    }
    config.faults.sort_by_key(|fault| fault.at);
}

/// Two opposite steps of the store's clock between two looks cancel out, and nobody can notice:
/// that is beyond what is promised. So they are kept apart.
fn space_out(faults: &mut Vec<Fault>, config: &Config) {
    let mut last: Option<Real> = None;
    faults.retain(|fault| {
        if !matches!(fault.kind, Kind::StoreStep | Kind::StepAtHandOver) {
            return true;
        }
        let apart = last.is_none_or(|at| fault.at - at > config.ttl * 6);
        if apart {
            last = Some(fault.at);
        }
        apart
    });
}

fn applies(kind: Kind, config: &Config) -> bool {
    match kind {
        // One machine has one clock: it cannot be frozen for one process alone.
        Kind::Freeze | Kind::Faint | Kind::Stutter => config.ages != Ages::Exact,
        Kind::StoreStep | Kind::StepAtHandOver => config.ages == Ages::Told,
        Kind::NoNews => config.capabilities.news == News::Push,
        _ => true,
    }
}
