//! Petition: the leader is asked to give its term up. Only it can: it knows when its work has stopped.

use serde_json::json;
use tenure_core::{ElectionName, NodeId};
use tenure_store::{EventKind, Petitioned};

use super::Scope;
use super::contest::{Contest, term};
use super::reading::candidates;
use crate::error::Stop;

pub(crate) fn petition(
    scope: &Scope<'_>,
    name: &ElectionName,
    to: Option<&NodeId>,
) -> Result<Petitioned, Stop> {
    let mut contest = Contest::load(scope, name)?;
    let Some(leader) = contest.holder.as_ref().map(|holder| holder.node.clone()) else {
        return Ok(Petitioned::NobodyLeads);
    };
    if let Some(to) = to
        && !candidates(scope, name)?.iter().any(|candidate| candidate.node == *to)
    {
        return Ok(Petitioned::NotStanding);
    }
    let asked = contest.row.term;
    if (contest.row.asked, contest.row.asked_for.as_ref()) != (asked, to) {
        (contest.row.asked, contest.row.asked_for) = (asked, to.cloned());
        let data = to.map_or_else(|| json!({}), |to| json!({"to": to.as_str()}));
        contest.tell(EventKind::TransferRequested, Some(&leader), asked, &data)?;
        contest.save()?;
        contest.notify_holder()?;
    }
    Ok(Petitioned::Noted { leader, term: term(asked) })
}
