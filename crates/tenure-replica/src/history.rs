//! The history: a log per election, and one for the nodes.

use std::collections::{BTreeMap, VecDeque};

use tenure_core::ElectionName;
use tenure_store::{EventQuery, EventRecord, Limit, Retention};

#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct History {
    /// `None` is the log of the nodes.
    logs: BTreeMap<Option<ElectionName>, Log>,
}

#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Log {
    /// Counts on after old events were dropped.
    last_sequence: u64,
    events: VecDeque<EventRecord>,
}

impl History {
    /// Adds an event to its log, and drops what is beyond retention. Events after `settled` stay:
    /// the transition under way is kept whole.
    pub(crate) fn append(&mut self, mut event: EventRecord, retention: Retention, settled: u64) {
        let log = self.logs.entry(event.election.clone()).or_default();
        if event.election.is_some() {
            log.last_sequence += 1;
        }
        event.sequence = log.last_sequence;
        log.events.push_back(event);
        let kept = usize::try_from(retention.events).unwrap_or(usize::MAX);
        while log.events.len() > kept && log.events.pop_front_if(|oldest| oldest.id <= settled).is_some() {}
    }

    pub(crate) fn read(&self, query: &EventQuery) -> Vec<EventRecord> {
        let wanted = |name: &Option<ElectionName>| query.election.is_none() || *name == query.election;
        let mut events: Vec<_> = self
            .logs
            .iter()
            .filter(|(name, _)| wanted(name))
            .flat_map(|(_, log)| &log.events)
            .filter(|event| event.id > query.after)
            .cloned()
            .collect();
        events.sort_by_key(|event| event.id);
        let count =
            query.limit.map_or(usize::MAX, |limit| usize::try_from(limit.count()).unwrap_or(usize::MAX));
        match query.limit {
            Some(Limit::Newest(_)) => drop(events.drain(..events.len().saturating_sub(count))),
            _ => events.truncate(count),
        }
        events
    }
}
