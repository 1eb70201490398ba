//! Resignation: a lease, a place among the candidates, or an unanswered claim is given up.

use rusqlite::params;
use serde_json::{Value, json};
use tenure_store::{EventKind, Resign};

use super::Scope;
use super::claim::grant;
use super::contest::{Contest, term};
use super::sessions::find;
use super::succession::successor;
use crate::error::Stop;
use crate::rows::whole;

/// Under a session that is over there is nothing left to give up, so that is no error.
pub(crate) fn resign(scope: &Scope<'_>, resign: &Resign) -> Result<(), Stop> {
    let Some(candidate) = find(scope, resign.session)? else { return Ok(()) };
    let (election, session) = (resign.election.as_str(), resign.session.to_string());
    let attempt = whole(resign.attempt)?;
    scope.execute(
        "UPDATE tenure_sessions SET attempt = ?2 WHERE id = ?1 AND attempt < ?2",
        params![session, attempt],
    )?;
    scope.execute(
        "DELETE FROM tenure_candidates
         WHERE namespace = ?1 AND election = ?2 AND session = ?3 AND attempt <= ?4",
        params![scope.namespace, election, session, attempt],
    )?;
    let mut contest = Contest::load(scope, &resign.election)?;
    // A resignation that arrives late must not undo a claim that was sent after it: its node may
    // have been told since that it leads.
    let is_ours = contest.row.session == Some(resign.session) && contest.row.attempt <= attempt;
    if !is_ours || resign.term.is_some_and(|only| only != term(contest.row.term)) {
        return Ok(());
    }
    contest.row.session = None;
    let freed = contest.row.term;
    let asked = contest.row.asked == freed;
    let next = successor(scope, &resign.election, resign.to.as_ref())?;
    let named = next.as_ref().filter(|next| asked || resign.to.as_ref() == Some(&next.node));
    let mut data = resign.cause.data();
    if let Some(named) = named {
        let to = json!(named.node.as_str());
        data.insert(String::from("to"), to.clone());
        if !asked {
            let request = json!({"to": to});
            contest.tell(EventKind::TransferRequested, Some(&candidate.node), freed, &request)?;
        }
    }
    contest.tell(resign.cause.event(), Some(&candidate.node), freed, &Value::Object(data))?;
    match next {
        Some(next) => grant(scope, contest, next).map(drop),
        None => contest.save(),
    }
}
