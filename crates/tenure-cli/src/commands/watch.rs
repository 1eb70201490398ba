//! `tenure watch`: every change of leader, as it happens.
//!
//! What has changed is read in the history, so that nothing is missed between two looks. Only a lapse
//! is not written there until somebody takes over; that one is seen by the clock.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tenure::{ElectionName, EventKind, EventQuery, EventRecord, Store, TermEnd};

use super::ending::Ending;
use super::follow::{LOOK_EVERY, News, Patience, still_read};
use super::sight::Sight;
use super::unknown::if_unknown;
use crate::cli::{Global, Watch};
use crate::failure::{Exit, Failure};
use crate::output::{self, BAD, FAINT, GOOD, styled};
use crate::store::ask;

pub async fn watch(store: Arc<dyn Store>, global: &Global, asked: &Watch) -> Result<Exit, Failure> {
    let mut news = News::of(&store, Some(&asked.election));
    let mut patience = Patience::new(global.json);
    let mut watcher = Watcher::new(store, &asked.election, global.json);
    patience.first(&mut news, async || watcher.read_on().await).await?;
    if watcher.history.is_empty()
        && let Some(absence) = if_unknown(&watcher.store, &asked.election).await?
    {
        output::notice(global.json, &format!("{absence}; waiting for its first leader"));
    }
    loop {
        let look = watcher.look().await;
        let wait = patience.bear(look)?.unwrap_or(LOOK_EVERY);
        still_read()?;
        news.wait(wait).await;
    }
}

/// Whether a term ended with the write that began the next one, so that nobody led for no time.
fn is_passed_on(event: &EventRecord, later: &[EventRecord]) -> bool {
    let Some(end) = TermEnd::of(event) else { return false };
    let next = later.iter().find(|later| later.kind == EventKind::LeaderElected);
    next.is_some_and(|next| end.until(next.time).at_most.is_zero())
}

/// Who leads, under which term.
type Leader = Option<(String, u64)>;

struct Watcher {
    store: Arc<dyn Store>,
    election: ElectionName,
    json: bool,
    /// What was told last; `None`: nothing yet.
    told: Option<Leader>,
    /// The history of the election up to the last look, from the present term on.
    history: Vec<EventRecord>,
}

#[derive(Serialize)]
struct Change<'a> {
    time: String,
    election: &'a str,
    leader_id: Option<&'a str>,
    term: u64,
    /// Why nobody leads.
    reason: Option<String>,
}

impl Watcher {
    fn new(store: Arc<dyn Store>, election: &ElectionName, json: bool) -> Self {
        Self { store, election: election.clone(), json, told: None, history: Vec::new() }
    }

    /// Tells what is new, and how long nothing will be unless there is news.
    async fn look(&mut self) -> Result<Duration, Failure> {
        loop {
            // In this order: if the history tells nothing new, it is no older than what is seen.
            let sight = Sight::read(&self.store, &self.election).await?;
            let new = self.read_on().await?;
            if new.is_empty() {
                self.tell_sight(&sight)?;
                let lapses = sight.expires_in_ms.map(|left| Duration::from_millis(left + 1));
                return Ok(lapses.unwrap_or(LOOK_EVERY).min(LOOK_EVERY));
            }
            let changes =
                new.iter().enumerate().filter(|(number, event)| !is_passed_on(event, &new[number + 1..]));
            for (_, event) in changes {
                self.tell_event(event)?;
            }
        }
    }

    /// What the history has that was not there before.
    async fn read_on(&mut self) -> Result<Vec<EventRecord>, Failure> {
        let after = self.history.last().map_or(0, |event| event.id);
        let begun = self.history.iter().rposition(|event| event.kind == EventKind::LeaderElected);
        self.history.drain(..begun.unwrap_or(0));
        let query = EventQuery { election: Some(self.election.clone()), after, limit: None };
        let new = ask(self.store.events(query)).await?;
        self.history.extend(new.iter().cloned());
        Ok(new)
    }

    fn tell_event(&mut self, event: &EventRecord) -> Result<(), Failure> {
        let term = event.term.number();
        match (event.kind, &event.node) {
            (EventKind::LeaderElected, Some(node)) => {
                self.tell(event.time, Some((node.to_string(), term)), term)
            }
            (EventKind::LeaderResigned | EventKind::LeaderLost, _) => self.tell(event.time, None, term),
            _ => Ok(()),
        }
    }

    fn tell_sight(&mut self, sight: &Sight) -> Result<(), Failure> {
        let leader = sight.leader_id.clone().map(|leader| (leader, sight.term));
        self.tell(SystemTime::now(), leader, sight.term)
    }

    /// Tells a change, if it is one.
    fn tell(&mut self, time: SystemTime, leader: Leader, term: u64) -> Result<(), Failure> {
        let before = self.told.replace(leader.clone());
        if before.as_ref() == Some(&leader) {
            return Ok(());
        }
        let before = before.flatten();
        let over = before.as_ref().map(|(_, term)| self.ending(*term));
        if self.json {
            let term = before.filter(|_| leader.is_none()).map_or(term, |(_, term)| term);
            return output::json(&Change {
                time: output::timestamp(time),
                election: self.election.as_str(),
                leader_id: leader.as_ref().map(|(leader, _)| leader.as_str()),
                term,
                reason: over.filter(|_| leader.is_none()),
            });
        }
        let why = match (&before, over) {
            (Some((leader, term)), Some(over)) => format!(" ({leader}'s term {term} is over: {over})"),
            _ => String::new(),
        };
        let what = match leader {
            Some((leader, term)) => format!("{} leads under term {term}", styled(GOOD, leader)),
            None => styled(BAD, "nobody leads"),
        };
        output::say(format!("{}  {what}{why}", styled(FAINT, output::moment(time))))
    }

    /// Why a term is over. One that nobody has ended yet has lapsed.
    fn ending(&self, term: u64) -> String {
        Ending::of(&self.history, term).map_or_else(|| String::from("lapsed"), |ending| ending.words())
    }
}
