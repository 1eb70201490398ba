//! What children work under: an office that this node was elected to, or its owner's choice.

use std::sync::Arc;

use tenure_core::{Pace, Reason, Term};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::child::Right;
use crate::election::Election;
use crate::leadership::{Charge, Duty, Leadership};
use crate::link::{Command, Link};
use crate::office::Office;
use crate::reason;

pub(super) enum Post {
    Elected {
        office: Arc<Office>,
        /// The supervisor's own share of the work: it stops last.
        charge: Charge,
        link: Arc<Link>,
    },
    /// Until it is cancelled.
    Chosen(CancellationToken),
}

impl Post {
    pub(super) fn elected(office: &Arc<Office>, election: &Election) -> Self {
        let charge = Charge::begin(office, election.contest());
        Self::Elected { office: Arc::clone(office), charge, link: Arc::clone(election.link()) }
    }

    pub(super) fn term(&self) -> Option<Term> {
        match self {
            Self::Elected { office, .. } => Some(office.term),
            Self::Chosen(_) => None,
        }
    }

    pub(super) fn right(&self) -> Right {
        match self {
            Self::Elected { office, link, .. } => {
                Right::Elected(Leadership::supervised(Arc::clone(office), Arc::clone(link)))
            }
            Self::Chosen(over) => Right::Chosen(over.clone()),
        }
    }

    /// A share of the work, for one child. The lease is given back after the last of them.
    pub(super) fn share(&self) -> Option<Arc<Duty>> {
        match self {
            Self::Elected { charge, .. } => Some(charge.share()),
            Self::Chosen(_) => None,
        }
    }

    /// This task is aborted in time, also if the supervisor cannot do it.
    pub(super) fn employ(&self, task: AbortHandle) {
        if let Self::Elected { office, .. } = self {
            office.employ(task);
        }
    }

    /// Cancelled once the post is lost or given up.
    pub(super) fn lost(&self) -> &CancellationToken {
        match self {
            Self::Elected { office, .. } => office.lost(),
            Self::Chosen(over) => over,
        }
    }

    /// Whether it is over, and if so, how fast the work must stop. A child may find that out by its check
    /// before anybody is told, so the clock is asked.
    pub(super) fn over(&self) -> Option<Pace> {
        match self {
            Self::Elected { office, .. } => {
                let reason = office.check().err()?.reason;
                office.close(reason);
                Some(if reason::lease_outlives(reason) { Pace::InOrder } else { Pace::AtOnce })
            }
            Self::Chosen(over) => over.is_cancelled().then_some(Pace::InOrder),
        }
    }

    /// Closes the guard. The lease is given back after all work has stopped.
    pub(super) fn give_up(&self, reason: Reason) {
        match self {
            Self::Elected { office, link, .. } => {
                if office.close(reason) {
                    let (election, id) = (office.election.clone(), office.id);
                    link.tell(Command::Resign { election, id, to: None });
                }
            }
            Self::Chosen(over) => over.cancel(),
        }
    }
}
