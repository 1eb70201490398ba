//! A planned hand-over: the leader is asked to make way, and we wait until it has.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tenure::{ElectionName, EventKind, NodeId, Store};
use tenure_core::{Instant, Term};
use tenure_store::{Petitioned, clock};

use super::ending::Ending;
use super::follow::News;
use super::sight::Sight;
use super::unknown::unknown;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::store::ask;

/// How often to look besides hints: somebody sits there and waits.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// After this, whoever waits is told for what.
const LONG: Duration = Duration::from_secs(1);

/// Asks the leader to make way, for `to` or for the first in line, and waits until somebody has.
pub async fn hand_over(
    store: Arc<dyn Store>,
    global: &Global,
    election: &ElectionName,
    to: Option<&NodeId>,
    timeout: Duration,
) -> Result<Exit, Failure> {
    let mut news = News::of(&store, Some(election));
    let (leader, term) = match petition(&store, election, to).await? {
        Asked::Noted(leader, term) => (leader, term),
        Asked::Leads(sight) => return already(&sight, global.json),
    };
    let wait = Wait { store, election, to, leader: leader.to_string(), term, until: clock::now() + timeout };
    let successor = wait.over(&mut news, global.json).await?;
    wait.report(successor, global.json).await
}

/// Asks the leader; who that is, and which term it is to give up.
async fn petition(
    store: &Arc<dyn Store>,
    election: &ElectionName,
    to: Option<&NodeId>,
) -> Result<Asked, Failure> {
    match ask(store.petition(election.clone(), to.cloned())).await? {
        Petitioned::Noted { leader, term } => Ok(Asked::Noted(leader, term)),
        Petitioned::NobodyLeads => {
            let known = ask(store.elections()).await?;
            if !known.iter().any(|(name, _)| name == election) {
                return Err(unknown(store, election).await?);
            }
            Err(Failure::No(format!("nobody leads `{election}`, so nobody can make way")))
        }
        Petitioned::NotStanding => {
            let sight = Sight::read(store, election).await?;
            if to.is_some_and(|to| sight.leader_id.as_deref() == Some(to.as_str())) {
                return Ok(Asked::Leads(sight));
            }
            let standing = ask(store.candidates(election.clone())).await?;
            let names: Vec<_> = standing.iter().map(|candidate| candidate.node.as_str()).collect();
            let to = to.map_or("nobody", NodeId::as_str);
            Err(Failure::No(match names.as_slice() {
                [] => format!("{to} does not stand for `{election}`, and nobody else does"),
                names => format!("{to} does not stand for `{election}`; standing are {}", names.join(", ")),
            }))
        }
    }
}

/// What became of the request.
enum Asked {
    /// This leader was asked to give up this term.
    Noted(NodeId, Term),
    /// The node that is to lead does so already: a request that is repeated is no error.
    Leads(Sight),
}

fn already(sight: &Sight, json: bool) -> Result<Exit, Failure> {
    let (election, leader) = (&sight.election, sight.leader_id.as_deref().unwrap_or_default());
    if json {
        let term = sight.term;
        output::json(&Outcome {
            election,
            previous_leader: leader,
            previous_term: term,
            leader_id: Some(leader),
            term: Some(term),
        })?;
    } else {
        output::say(format!("{leader} leads `{election}` already, under term {}", sight.term))?;
    }
    Ok(Exit::DONE)
}

/// Waiting for a leader that was asked to make way.
struct Wait<'a> {
    store: Arc<dyn Store>,
    election: &'a ElectionName,
    to: Option<&'a NodeId>,
    leader: String,
    term: Term,
    until: Instant,
}

/// Who leads next, and under which term.
type Successor = Option<(String, u64)>;

#[derive(Serialize)]
struct Outcome<'a> {
    election: &'a str,
    previous_leader: &'a str,
    previous_term: u64,
    leader_id: Option<&'a str>,
    term: Option<u64>,
}

impl Wait<'_> {
    async fn over(&self, news: &mut News, json: bool) -> Result<Successor, Failure> {
        let begun = clock::now();
        let mut said = false;
        loop {
            if let Some(successor) = self.look().await? {
                return Ok(successor);
            }
            let now = clock::now();
            if now >= self.until {
                return Err(Failure::No(self.unfinished(now.since(begun)).await?));
            }
            if now.since(begun) >= LONG && !std::mem::replace(&mut said, true) {
                output::notice(json, &format!("waiting for {} to stop its work…", self.leader));
            }
            news.wait(LOOK_EVERY.min(self.until.since(now))).await;
        }
    }

    /// Who leads next, once that is settled.
    async fn look(&self) -> Result<Option<Successor>, Failure> {
        // In this order: whoever is elected between the two questions stands no longer, but leads.
        let standing = ask(self.store.candidates(self.election.clone())).await?;
        let sight = self.sight().await?;
        match sight.leader_id {
            Some(_) if sight.term == self.term.number() => Ok(None),
            Some(leader) => Ok(Some(Some((leader, sight.term)))),
            // Nobody is there to wait for.
            None if self.to.is_none() && standing.is_empty() => Ok(Some(None)),
            None => Ok(None),
        }
    }

    async fn sight(&self) -> Result<Sight, Failure> {
        Sight::read(&self.store, self.election).await
    }

    /// What is true when there is no time left.
    async fn unfinished(&self, waited: Duration) -> Result<String, Failure> {
        let (sight, waited) = (self.sight().await?, output::length(waited));
        let Self { leader, term, .. } = self;
        Ok(match sight.leader_id {
            Some(_) if sight.term == term.number() => format!(
                "after {waited} {leader} still leads under term {term}; it was asked, and gives it up once its \
                 work has stopped"
            ),
            Some(other) => format!("after {waited} {other} leads under term {}", sight.term),
            None => format!("{leader} gave up term {term}, but after {waited} nobody leads yet"),
        })
    }

    async fn report(&self, successor: Successor, json: bool) -> Result<Exit, Failure> {
        let Self { election, leader, term, .. } = self;
        if json {
            let outcome = Outcome {
                election: election.as_str(),
                previous_leader: leader,
                previous_term: term.number(),
                leader_id: successor.as_ref().map(|(next, _)| next.as_str()),
                term: successor.as_ref().map(|(_, term)| *term),
            };
            output::json(&outcome)?;
        }
        let gone = format!("{} term {term}", self.gave_up().await?);
        match (&successor, self.to) {
            (Some((next, under)), Some(to)) if next != to.as_str() => {
                Err(Failure::No(format!("{leader} {gone}, but {next} leads under term {under}, not {to}")))
            }
            _ if json => Ok(Exit::DONE),
            (Some((next, under)), _) => {
                output::say(format!("{leader} {gone}; {next} leads under term {under}")).map(|()| Exit::DONE)
            }
            (None, _) => {
                let nobody = "nobody leads, since no candidate stands";
                output::say(format!("{leader} {gone}; {nobody}")).map(|()| Exit::DONE)
            }
        }
    }

    /// A leader that was asked may also have died over it.
    async fn gave_up(&self) -> Result<&'static str, Failure> {
        let ending = Ending::read(&self.store, self.election, self.term.number()).await?;
        let willing = ending.is_some_and(|ending| ending.kind == EventKind::LeaderResigned);
        Ok(if willing { "gave up" } else { "lost" })
    }
}
