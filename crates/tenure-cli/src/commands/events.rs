//! `tenure events`: the history, and what is added to it.

use std::sync::Arc;
use std::time::SystemTime;

use tenure::{EventQuery, EventRecord, Limit, Store};
use tenure_core::StoreIdentity;

use super::follow::{LOOK_EVERY, News, Patience, still_read};
use super::line;
use super::unknown::if_unknown;
use crate::cli::{Events, Global};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::store::told;

pub async fn events(store: Arc<dyn Store>, global: &Global, asked: &Events) -> Result<Exit, Failure> {
    let since = Since::parse(asked.since.as_deref())?;
    let mut news = asked.follow.then(|| News::of(&store, asked.election.as_ref()));
    let mut history = History { store, query: query(asked, &since), identity: None, json: global.json };
    let mut patience = Patience::new(global.json);
    let found = match &mut news {
        Some(news) => patience.first(news, async || history.new_events().await).await?,
        None => history.new_events().await?,
    };
    if found.is_empty()
        && let Some(election) = &asked.election
        && let Some(absence) = if_unknown(&history.store, election).await?
    {
        if !asked.follow {
            return Err(absence);
        }
        output::notice(global.json, &format!("{absence}; waiting for its first event"));
    }
    let wanted: Vec<&EventRecord> = found.iter().filter(|event| since.includes(event)).collect();
    let mut columns = line::Columns::of(wanted.iter().copied());
    for event in wanted {
        line::print(event, global.json, &mut columns)?;
    }
    // What is added is all told.
    history.query.limit = None;
    let Some(news) = &mut news else { return Ok(Exit::DONE) };
    loop {
        news.wait(LOOK_EVERY).await;
        still_read()?;
        for event in patience.bear(history.new_events().await)?.unwrap_or_default() {
            line::print(&event, global.json, &mut columns)?;
        }
    }
}

fn query(asked: &Events, since: &Since) -> EventQuery {
    let after = if let Since::Event(id) = since { *id } else { 0 };
    EventQuery { election: asked.election.clone(), after, limit: asked.limit.map(Limit::Newest) }
}

/// Where the history begins that was asked for.
enum Since {
    Always,
    Time(SystemTime),
    /// After the event with this id.
    Event(u64),
}

impl Since {
    fn parse(text: Option<&str>) -> Result<Self, Failure> {
        let Some(text) = text else { return Ok(Self::Always) };
        if let Ok(id) = text.parse() {
            return Ok(Self::Event(id));
        }
        if let Ok(age) = humantime::parse_duration(text) {
            let then = SystemTime::now().checked_sub(age);
            return Ok(then.map_or(Self::Always, Self::Time));
        }
        humantime::parse_rfc3339_weak(text).map(Self::Time).map_err(|_| {
            Failure::Usage(format!(
                "`--since {text}` is no point in the history; write an age such as 90m, a time in UTC such as \
                 2026-11-15T20:00:00Z, or the id of an event"
            ))
        })
    }

    fn includes(&self, event: &EventRecord) -> bool {
        match self {
            Self::Time(then) => event.time >= *then,
            Self::Always | Self::Event(_) => true,
        }
    }
}

/// The history, read on from where it was left.
struct History {
    store: Arc<dyn Store>,
    query: EventQuery,
    /// Whose history it is.
    identity: Option<StoreIdentity>,
    json: bool,
}

impl History {
    async fn new_events(&mut self) -> Result<Vec<EventRecord>, Failure> {
        let mut answer = told(self.store.events(self.query.clone())).await?;
        // Another history counts its events anew: what stood behind the old number may be all of it.
        if self.identity.is_some_and(|known| known != answer.store) {
            output::notice(self.json, "the store is another one than before; this is its history");
            self.query.after = 0;
            answer = told(self.store.events(self.query.clone())).await?;
        }
        self.identity = Some(answer.store);
        if let Some(last) = answer.value.last() {
            self.query.after = last.id;
        }
        Ok(answer.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_in_the_history_is_an_age_a_time_or_an_event() {
        let parse = |text| Since::parse(Some(text));
        assert!(matches!(parse("17"), Ok(Since::Event(17))));
        assert!(matches!(parse("90m"), Ok(Since::Time(then)) if then < SystemTime::now()));
        assert!(matches!(parse("2026-11-15T20:00:00Z"), Ok(Since::Time(_))));
        assert!(matches!(parse("2026-11-15 20:00:00"), Ok(Since::Time(_))));
        assert!(matches!(parse("yesterday"), Err(Failure::Usage(_))));
        assert!(matches!(Since::parse(None), Ok(Since::Always)));
    }
}
