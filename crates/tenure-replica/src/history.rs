//! The history: a log per election, and one for the nodes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

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

    /// A part of the history. What it costs depends on how much is asked for, and on the number of elections,
    /// but not on how long the history is: nobody else can read or write meanwhile.
    pub(crate) fn read(&self, query: &EventQuery) -> Vec<EventRecord> {
        let wanted = |name: &Option<ElectionName>| query.election.is_none() || *name == query.election;
        let logs = self.logs.iter().filter(|(name, _)| wanted(name)).map(|(_, log)| {
            let start = log.events.partition_point(|event| event.id <= query.after);
            log.events.range(start..)
        });
        let count =
            query.limit.map_or(usize::MAX, |limit| usize::try_from(limit.count()).unwrap_or(usize::MAX));
        match query.limit {
            Some(Limit::Newest(_)) => {
                let mut newest = merge(logs.map(Iterator::rev), count, |event| event.id);
                newest.reverse();
                newest
            }
            _ => merge(logs, count, |event| Reverse(event.id)),
        }
    }
}

/// The first events of several logs, each of which has those with the highest rank first.
fn merge<'a, R: Ord>(
    logs: impl Iterator<Item = impl Iterator<Item = &'a EventRecord>>,
    count: usize,
    rank: impl Fn(&EventRecord) -> R,
) -> Vec<EventRecord> {
    let mut logs: Vec<_> = logs.map(Iterator::peekable).collect();
    let mut next: BinaryHeap<_> = logs
        .iter_mut()
        .enumerate()
        .filter_map(|(number, log)| log.peek().map(|event| (rank(event), number)))
        .collect();
    let mut merged = Vec::new();
    while merged.len() < count
        && let Some((_, number)) = next.pop()
        && let Some(event) = logs[number].next()
    {
        merged.push(event.clone());
        next.extend(logs[number].peek().map(|event| (rank(event), number)));
    }
    merged
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use tenure_core::Term;
    use tenure_store::EventKind;

    use super::*;

    /// A history of three elections and the nodes, in which ids are missing.
    fn history() -> History {
        let mut history = History::default();
        for id in (0..400).filter(|id| id % 7 != 0) {
            let election = match id * 31 % 11 % 4 {
                0 => None,
                number => Some(ElectionName::new(format!("e{number}")).unwrap()),
            };
            let event = EventRecord {
                id,
                sequence: 0,
                time: SystemTime::UNIX_EPOCH,
                kind: EventKind::LeaderElected,
                election,
                node: None,
                term: Term::NONE,
                data: String::from("{}"),
            };
            history.append(event, Retention { events: 50 }, id);
        }
        history
    }

    /// The same by reading everything.
    fn read_all(history: &History, query: &EventQuery) -> Vec<u64> {
        let logs = history.logs.iter();
        let logs = logs.filter(|(name, _)| query.election.is_none() || **name == query.election);
        let mut ids: Vec<u64> = logs.flat_map(|(_, log)| &log.events).map(|event| event.id).collect();
        ids.retain(|id| *id > query.after);
        ids.sort_unstable();
        match query.limit {
            Some(Limit::Newest(count)) => drop(ids.drain(..ids.len().saturating_sub(count as usize))),
            Some(Limit::Oldest(count)) => ids.truncate(count as usize),
            None => {}
        }
        ids
    }

    #[test]
    fn every_part_of_the_history_is_the_same_as_if_all_of_it_had_been_read() {
        let history = history();
        let elections = [None, Some("e1"), Some("e2"), Some("nobody")]
            .map(|name| name.map(|name| ElectionName::new(name).unwrap()));
        for election in elections {
            for after in [0, 1, 200, 250, 333, 399, 1000] {
                for count in [0, 1, 2, 7, 60, 1000] {
                    for limit in [None, Some(Limit::Oldest(count)), Some(Limit::Newest(count))] {
                        let query = EventQuery { election: election.clone(), after, limit };
                        let ids: Vec<u64> = history.read(&query).iter().map(|event| event.id).collect();
                        assert_eq!(ids, read_all(&history, &query), "{query:?}");
                    }
                }
            }
        }
    }
}
