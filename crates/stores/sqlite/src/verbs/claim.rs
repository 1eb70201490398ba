//! Claims: how a lease is granted, or why it is not.

use rusqlite::params;
use serde_json::json;
use tenure_core::{NodeId, Standing, Term};
use tenure_store::{Claim, EventKind};

use super::Scope;
use super::contest::{Contest, term};
use super::sessions::{live, retire};
use super::succession::{Successor, preferred};
use crate::error::Stop;
use crate::rows::whole;

pub(crate) fn claim(scope: &Scope<'_>, claim: &Claim) -> Result<Standing, Stop> {
    let candidate = live(scope, claim.session)?;
    let mut contest = Contest::load(scope, &claim.election)?;
    let overtaken = claim.attempt < candidate.barrier;
    let ended_since = claim.since.is_some_and(|since| term(contest.row.ended) > since);
    if overtaken || ended_since {
        return Ok(Standing::Waiting { seen: contest.record() });
    }

    if claim.tell_only {
        contest.row.floor = contest.row.floor.max(whole(claim.above.number())?);
        contest.save()?;
        return Ok(Standing::Waiting { seen: contest.record() });
    }
    // Only the holder of this very election: to retire anybody else is not this claim's business.
    if let Some(over) = claim.over
        && contest.row.session == Some(over.session)
        && over.session != claim.session
        && retire(scope, over)?
    {
        contest = contest.reload()?;
    }
    contest.row.floor = contest.row.floor.max(whole(claim.above.number())?);

    if contest.holder.is_some() && contest.row.session == Some(claim.session) {
        // A resignation that was sent before this claim, but arrives after it, is void.
        contest.row.attempt = contest.row.attempt.max(whole(claim.attempt)?);
        contest.save()?;
        return Ok(Standing::Leading { term: term(contest.row.term) });
    }
    start(&mut contest, &candidate.node)?;
    if contest.holder.is_some() {
        contest.save()?;
        wait(scope, claim)?;
        return Ok(Standing::Waiting { seen: contest.record() });
    }
    let Some(preferred) = preferred(scope, claim)? else {
        let (session, attempt) = (claim.session, whole(claim.attempt)?);
        let term = grant(scope, contest, Successor { session, node: candidate.node, attempt })?;
        return Ok(Standing::Leading { term });
    };
    wait(scope, claim)?;
    grant(scope, contest, preferred)?;
    Ok(Standing::Waiting { seen: Contest::load(scope, &claim.election)?.record() })
}

/// The first to stand since the beginning, or since an end, starts the election.
fn start(contest: &mut Contest<'_>, node: &NodeId) -> Result<(), Stop> {
    if contest.row.stood {
        return Ok(());
    }
    contest.row.stood = true;
    contest.tell(EventKind::ElectionStarted, Some(node), contest.term(), &json!({}))
}

pub(super) fn grant(
    scope: &Scope<'_>,
    mut contest: Contest<'_>,
    Successor { session, node, attempt }: Successor,
) -> Result<Term, Stop> {
    let previous = contest.row.leader.replace(node.clone());
    if contest.row.session.take().is_some() {
        // Its session was ended by hand, so nobody has told of its loss yet.
        contest.tell(
            EventKind::LeaderLost,
            previous.as_ref(),
            contest.row.term,
            &json!({"reason": "lapsed"}),
        )?;
    }
    let granted = contest.next_term()?;
    contest.row.term = granted;
    contest.row.session = Some(session);
    contest.row.attempt = attempt;
    contest.row.acquired_at = Some(scope.moment.wall.clone());
    contest.tell(EventKind::LeaderElected, Some(&node), granted, &json!({}))?;
    if let Some(previous) = previous.filter(|previous| *previous != node) {
        let data = json!({"previous": previous.as_str(), "new": node.as_str()});
        contest.tell(EventKind::LeaderChanged, Some(&node), granted, &data)?;
    }
    contest.save()?;
    scope.execute(
        "UPDATE tenure_sessions SET grants = grants + 1 WHERE id = ?1",
        params![session.to_string()],
    )?;
    scope.execute(
        "DELETE FROM tenure_candidates WHERE namespace = ?1 AND election = ?2 AND session = ?3",
        params![scope.namespace, contest.name.as_str(), session.to_string()],
    )?;
    Ok(term(granted))
}

/// Registers a candidate so that others see it. Whoever asks again writes nothing, and keeps its
/// place.
fn wait(scope: &Scope<'_>, claim: &Claim) -> Result<(), Stop> {
    let (election, session) = (claim.election.as_str(), claim.session.to_string());
    let registered = scope.one(
        "SELECT priority FROM tenure_candidates WHERE namespace = ?1 AND election = ?2 AND session = ?3",
        params![scope.namespace, election, session],
        |row| row.get::<_, i32>(0),
    )?;
    match registered {
        Some(priority) if priority == claim.priority => 0,
        Some(_) => scope.execute(
            "UPDATE tenure_candidates SET priority = ?4, attempt = max(attempt, ?5)
             WHERE namespace = ?1 AND election = ?2 AND session = ?3",
            params![scope.namespace, election, session, claim.priority, whole(claim.attempt)?],
        )?,
        None => scope.execute(
            "INSERT INTO tenure_candidates (namespace, election, session, priority, attempt, since)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                scope.namespace,
                election,
                session,
                claim.priority,
                whole(claim.attempt)?,
                scope.moment.wall
            ],
        )?,
    };
    Ok(())
}
