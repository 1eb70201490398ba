//! `tenure explain`: the story of a term, as the history tells it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tenure::{ElectionName, EventKind, EventQuery, EventRecord, Store, Vacancy};

use super::ending::{Ending, ends, is};
use super::line::{self, Line};
use super::sight::Sight;
use super::unknown::unknown;
use crate::cli::{Explain, Global};
use crate::failure::{Exit, Failure};
use crate::output::{self, ago, length, millis, moment, timestamp};
use crate::store::ask;

pub async fn explain(store: Arc<dyn Store>, global: &Global, asked: &Explain) -> Result<Exit, Failure> {
    let election = &asked.election;
    let query = EventQuery { election: Some(election.clone()), ..EventQuery::default() };
    let history = ask(store.events(query)).await?;
    if history.is_empty() {
        return Err(unknown(&store, election).await?);
    }
    let story = Story::of(election, &history, asked.term)?;
    if global.json {
        return output::json(&story.told(SystemTime::now())).map(|()| Exit::DONE);
    }
    let sight = Sight::read(&store, election).await?;
    let leads = sight.leader_id.is_some() && sight.term == story.term;
    output::say(story.text(SystemTime::now(), leads))?;
    let columns = line::Columns::of(story.events);
    for event in story.events {
        output::say(format!("  {}", line::text(event, columns)))?;
    }
    Ok(Exit::DONE)
}

/// A term, and the one before it.
struct Story<'a> {
    election: &'a ElectionName,
    term: u64,
    leader: String,
    elected: SystemTime,
    ending: Option<Ending>,
    previous: Option<Previous>,
    /// Somebody was elected later.
    succeeded: bool,
    /// From the end of the term before, to the end of this one.
    events: &'a [EventRecord],
}

struct Previous {
    leader: String,
    term: u64,
    /// `None` if the history does not tell.
    ending: Option<Ending>,
}

/// A story as programs read it.
#[derive(Serialize)]
struct Told {
    election: String,
    term: u64,
    leader_id: String,
    elected_at: String,
    previous_leader: Option<String>,
    previous_term: Option<u64>,
    /// The event that ended it.
    previous_ended: Option<&'static str>,
    previous_ended_at: Option<String>,
    previous_reason: Option<String>,
    /// The same in words.
    previous_why: Option<String>,
    /// How long nobody led before this term; at most, if the leader before fell silent.
    gap_ms: Option<u64>,
    /// The same from the end of its lease; less only if the leader before fell silent.
    gap_at_least_ms: Option<u64>,
    ended_at: Option<String>,
    ended_by: Option<&'static str>,
    reason: Option<String>,
    /// The same in words.
    why: Option<String>,
    /// So far, if it has not ended.
    lasted_ms: u64,
    events: Vec<Line>,
}

impl<'a> Story<'a> {
    fn of(
        election: &'a ElectionName,
        history: &'a [EventRecord],
        wanted: Option<u64>,
    ) -> Result<Self, Failure> {
        let grants: Vec<usize> =
            (0..history.len()).filter(|at| history[*at].kind == EventKind::LeaderElected).collect();
        let found =
            grants.iter().rposition(|at| wanted.is_none_or(|term| history[*at].term.number() == term));
        let Some(found) = found else { return Err(untold(election, history, wanted)) };
        let granted = grants[found];
        let event = &history[granted];
        let term = event.term.number();
        let before = found.checked_sub(1).map(|found| &history[grants[found]]);
        let previous = before.map(|before| Previous {
            leader: node(before),
            term: before.term.number(),
            ending: Ending::of(history, before.term.number()),
        });
        let begins = previous.as_ref().and_then(|previous| {
            history.iter().position(|event| {
                is(event, EventKind::TransferRequested, previous.term) || ends(event) == Some(previous.term)
            })
        });
        let ended = (granted..history.len()).find(|at| ends(&history[*at]) == Some(term));
        let next = grants.get(found + 1).map_or(history.len() - 1, |next| next - 1);
        Ok(Self {
            election,
            term,
            leader: node(event),
            elected: event.time,
            ending: Ending::of(history, term),
            previous,
            succeeded: found + 1 < grants.len(),
            events: &history[begins.unwrap_or(granted).min(granted)..=ended.unwrap_or(next)],
        })
    }

    /// How long nobody led before this term.
    fn gap(&self) -> Option<Vacancy> {
        Some(self.previous.as_ref()?.ending.as_ref()?.when.until(self.elected))
    }

    fn lasted(&self, now: SystemTime) -> Duration {
        let end = self.ending.as_ref().map_or(now, Ending::led_until);
        end.duration_since(self.elected).unwrap_or_default()
    }

    fn told(&self, now: SystemTime) -> Told {
        let previous = self.previous.as_ref();
        let before = previous.and_then(|previous| previous.ending.as_ref());
        let ending = self.ending.as_ref();
        Told {
            election: self.election.to_string(),
            term: self.term,
            leader_id: self.leader.clone(),
            elected_at: timestamp(self.elected),
            previous_leader: previous.map(|previous| previous.leader.clone()),
            previous_term: previous.map(|previous| previous.term),
            previous_ended: before.map(|ending| ending.kind.name()),
            previous_ended_at: before.map(|ending| timestamp(ending.led_until())),
            previous_reason: before.and_then(|ending| ending.reason.clone()),
            previous_why: before.map(why),
            gap_ms: self.gap().map(|gap| millis(gap.at_most)),
            gap_at_least_ms: self.gap().map(|gap| millis(gap.at_least)),
            ended_at: ending.map(|ending| timestamp(ending.led_until())),
            ended_by: ending.map(|ending| ending.kind.name()),
            reason: ending.and_then(|ending| ending.reason.clone()),
            why: ending.map(why),
            lasted_ms: millis(self.lasted(now)),
            events: self.events.iter().map(Line::of).collect(),
        }
    }

    fn text(&self, now: SystemTime, leads: bool) -> String {
        let Self { election, term, leader, .. } = self;
        let (elected, since) = (moment(self.elected), ago(self.elected));
        let mut text =
            format!("{leader} was elected for {election} under term {term} at {elected}, {since}.");
        match &self.previous {
            None => text.push_str("\nThe history tells of nobody before it."),
            Some(Previous { leader, term, ending: None }) => {
                text.push_str(&format!("\nBefore it, {leader} led under term {term}."));
            }
            Some(Previous { leader, term, ending: Some(ending) }) => {
                let (until, why) = (until(ending), why(ending));
                text.push_str(&format!("\nBefore it, {leader} led under term {term}, until {until}: {why}."));
            }
        }
        match self.gap() {
            Some(Vacancy { at_most: Duration::ZERO, .. }) => {
                text.push_str("\nThe lease was passed on to it by the write that freed it.")
            }
            Some(Vacancy { at_least, at_most }) if at_least == at_most => {
                text.push_str(&format!("\nNobody led for {}.", length(at_most)));
            }
            Some(Vacancy { at_least, at_most }) => {
                let (least, most) = (length(at_least), length(at_most));
                text.push_str(&format!("\nNobody led for at most {most}, and for at least {least}."));
            }
            None => {}
        }
        let lasted = length(self.lasted(now));
        text.push_str(&match &self.ending {
            Some(ending) => {
                format!("\nIt led for {lasted}, until {}: {}.", until(ending), why(ending))
            }
            None if leads => format!("\nIt still leads, {lasted} so far."),
            None if self.succeeded => String::from("\nHow it ended is not in the history."),
            None => String::from(
                "\nIt has been silent for its whole ttl, so nobody leads; nobody has taken over yet.",
            ),
        });
        text
    }
}

/// When a term ended. After a silence, that is not known exactly.
fn until(ending: &Ending) -> String {
    let (earliest, latest) = (moment(ending.when.earliest), moment(ending.when.latest));
    if earliest == latest {
        return earliest;
    }
    format!("{earliest} (its last renewal) or up to {latest} (the end of its lease)")
}

/// Why a term ended, as a sentence about its leader.
fn why(ending: &Ending) -> String {
    let lost = ending.kind == EventKind::LeaderLost;
    match (ending.reason.as_deref(), ending.cause.as_deref()) {
        (_, Some(cause)) if lost => cause.to_owned(),
        (Some("lapsed"), _) if lost && ending.reopened => outage(ending),
        (Some("lapsed"), _) if lost => String::from("it was silent for its whole ttl"),
        (Some("superseded"), _) if lost => {
            String::from("its own process had lost its session, and opened another")
        }
        (Some(reason), _) if lost => format!("it was lost ({reason})"),
        (None, _) if lost => String::from("it was lost"),
        (Some(why), _) | (None, Some(why)) => format!("it resigned ({why})"),
        (None, None) => String::from("it resigned"),
    }
}

/// The same process leads again, or stands: it was alive, and could not renew its session.
fn outage(ending: &Ending) -> String {
    let silent = ending.silent.map_or_else(String::new, |silent| format!(" for {}", length(silent)));
    let ttl = ending.ttl.map_or_else(String::new, |ttl| format!(", longer than its ttl of {}", length(ttl)));
    format!(
        "its session was not renewed{silent}{ttl}, because the store was away or its process was held up; then the \
         same process opened a new session"
    )
}

fn node(event: &EventRecord) -> String {
    event.node.as_ref().map_or_else(|| String::from("somebody"), ToString::to_string)
}

/// No such term; with what there is.
fn untold(election: &ElectionName, history: &[EventRecord], wanted: Option<u64>) -> Failure {
    let terms = history.iter().filter(|event| event.kind == EventKind::LeaderElected);
    let terms: Vec<u64> = terms.map(|event| event.term.number()).collect();
    Failure::No(match (terms.first(), terms.last(), wanted) {
        (Some(first), Some(last), Some(wanted)) => format!(
            "nobody was elected for `{election}` under term {wanted}, as far as its history goes: it tells of \
             terms {first} to {last}"
        ),
        _ => format!("nobody was ever elected for `{election}`, as far as its history goes"),
    })
}
