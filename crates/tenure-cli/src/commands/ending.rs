//! How a term ended, as the history tells it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tenure::{ElectionName, EventKind, EventQuery, EventRecord, Store, TermEnd};

use crate::failure::Failure;
use crate::store::ask;

/// The end of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub when: TermEnd,
    /// For how long its leader had not been heard of when that was recorded, if it fell silent.
    pub silent: Option<Duration>,
    /// How long its session was to live without a renewal, if that is recorded.
    pub ttl: Option<Duration>,
    /// The same process has opened another session.
    pub reopened: bool,
    pub kind: EventKind,
    /// Why, if it was not the leader's own idea.
    pub reason: Option<String>,
    /// How its program or its process ended, in words.
    pub cause: Option<String>,
}

impl Ending {
    /// What the history says of the end of this term; `None` if it still lasts, or if the
    /// history has forgotten.
    pub fn of(history: &[EventRecord], term: u64) -> Option<Self> {
        let begun = history.iter().position(|event| is(event, EventKind::LeaderElected, term));
        let since = &history[begun.unwrap_or(0)..];
        let ended = since.iter().position(|event| ends(event).is_some_and(|ended| ended == term))?;
        let event = &since[ended];
        let reason = match event.kind {
            EventKind::LeaderLost => word(event, "reason"),
            _ if succeeded(event) && since[..ended].iter().any(is_end) => Some(String::from(CLOSED)),
            _ => since[..ended].iter().rev().find_map(|earlier| asked(earlier, term)),
        };
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let length = |key: &str| data[key].as_u64().map(Duration::from_millis);
        Some(Self {
            when: TermEnd::of(event)?,
            silent: length("silent_ms"),
            ttl: length("ttl_ms"),
            reopened: data["reopened"] == true,
            kind: event.kind,
            reason,
            cause: cause(&data),
        })
    }

    /// Until then it led for certain.
    pub const fn led_until(&self) -> SystemTime {
        self.when.earliest
    }

    /// The same, from the store.
    pub async fn read(
        store: &Arc<dyn Store>,
        election: &ElectionName,
        term: u64,
    ) -> Result<Option<Self>, Failure> {
        let query = EventQuery { election: Some(election.clone()), ..EventQuery::default() };
        Ok(Self::of(&ask(store.events(query)).await?, term))
    }

    /// In a few words: `resigned`, `lapsed`, `resigned: asked to make way for beta`, `its program exited with code 1`.
    pub fn words(&self) -> String {
        let lost = self.kind == EventKind::LeaderLost;
        match (&self.reason, &self.cause) {
            (_, Some(cause)) if lost => cause.clone(),
            (Some(reason), _) if lost => reason.clone(),
            (None, _) if lost => String::from("lost"),
            (Some(why), _) | (None, Some(why)) => format!("resigned: {why}"),
            (None, None) => String::from("resigned"),
        }
    }
}

/// How a leader's program or its process ended, by the data of an event.
pub fn cause(data: &Value) -> Option<String> {
    if let Some(code) = data["exit_code"].as_i64() {
        return Some(format!("its program exited with code {code}"));
    }
    if let Some(signal) = data["signal"].as_i64() {
        let name = i32::try_from(signal).ok().and_then(signal_hook::low_level::signal_name);
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        return Some(format!("its program was killed by signal {signal}{name}"));
    }
    (data["reason"] == "process_ended").then(|| String::from("its process ended; its guardian noticed"))
}

/// Why a term ended whose program succeeded under `run --once`.
const CLOSED: &str = "its program ended with code 0, which closed the election";

/// The node whose program's success closed the election, if that is why it has ended.
pub fn closed_by(history: &[EventRecord]) -> Option<String> {
    let ended = history.iter().rposition(is_end)?;
    let closer = history[ended..].iter().find(|event| succeeded(event))?;
    closer.node.as_ref().map(ToString::to_string)
}

fn is_end(event: &EventRecord) -> bool {
    event.kind == EventKind::ElectionDeleted
}

/// Whether a leader resigned because its program had succeeded.
fn succeeded(event: &EventRecord) -> bool {
    event.kind == EventKind::LeaderResigned && number(event, "exit_code") == Some(0)
}

/// Which term an event ends.
pub fn ends(event: &EventRecord) -> Option<u64> {
    matches!(event.kind, EventKind::LeaderResigned | EventKind::LeaderLost).then(|| event.term.number())
}

/// Whether an event is of this kind and term.
pub fn is(event: &EventRecord, kind: EventKind, term: u64) -> bool {
    event.kind == kind && event.term.number() == term
}

/// What a leader was asked before it resigned.
fn asked(event: &EventRecord, term: u64) -> Option<String> {
    match event.kind {
        EventKind::TransferRequested if event.term.number() == term => Some(match word(event, "to") {
            Some(to) => format!("asked to make way for {to}"),
            None => String::from("asked to make way"),
        }),
        EventKind::ElectionDeleted => Some(String::from("the election was ended")),
        _ => None,
    }
}

/// A word in the data of an event.
fn word(event: &EventRecord, key: &str) -> Option<String> {
    Some(datum(event, key)?.as_str()?.to_owned())
}

/// A number in the data of an event.
fn number(event: &EventRecord, key: &str) -> Option<u64> {
    datum(event, key)?.as_u64()
}

fn datum(event: &EventRecord, key: &str) -> Option<Value> {
    let mut data: Value = serde_json::from_str(&event.data).ok()?;
    data.get_mut(key).map(Value::take)
}

#[cfg(test)]
mod tests {
    use tenure::Term;

    use super::*;

    fn event(id: u64, kind: EventKind, term: u64, data: &str) -> EventRecord {
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(id);
        let (election, node) = (ElectionName::new("nightly").ok(), None);
        EventRecord {
            id,
            sequence: id,
            time,
            kind,
            election,
            node,
            term: Term::new(term),
            data: data.to_owned(),
        }
    }

    fn words(history: &[EventRecord], term: u64) -> Option<String> {
        Ending::of(history, term).map(|ending| ending.words())
    }

    #[test]
    fn a_term_ends_by_resignation_by_request_or_by_loss() {
        use EventKind::{ElectionDeleted, LeaderElected, LeaderLost, LeaderResigned, TransferRequested};
        let history = [
            event(1, LeaderElected, 1, "{}"),
            event(2, LeaderResigned, 1, "{}"),
            event(3, LeaderElected, 2, "{}"),
            event(4, TransferRequested, 2, r#"{"to":"beta"}"#),
            event(5, LeaderResigned, 2, r#"{"to":"beta"}"#),
            event(6, LeaderElected, 3, "{}"),
            event(7, LeaderLost, 3, r#"{"reason":"lapsed"}"#),
            event(8, LeaderElected, 4, "{}"),
            event(9, ElectionDeleted, 5, "{}"),
            event(10, LeaderResigned, 4, "{}"),
            event(11, LeaderElected, 6, "{}"),
        ];
        assert_eq!(words(&history, 1).as_deref(), Some("resigned"));
        assert_eq!(words(&history, 2).as_deref(), Some("resigned: asked to make way for beta"));
        assert_eq!(words(&history, 3).as_deref(), Some("lapsed"));
        assert_eq!(words(&history, 4).as_deref(), Some("resigned: the election was ended"));
        assert_eq!(words(&history, 6), None);
        assert_eq!(words(&[], 1), None);
    }

    #[test]
    fn the_end_of_a_program_or_a_process_is_told_in_words() {
        use EventKind::{LeaderElected, LeaderLost, LeaderResigned};
        let told = |kind, data| {
            let history = [event(1, LeaderElected, 1, "{}"), event(2, kind, 1, data)];
            words(&history, 1).unwrap()
        };
        let failed = told(LeaderLost, r#"{"reason":"program_failed","exit_code":1}"#);
        assert_eq!(failed, "its program exited with code 1");
        let killed = told(LeaderLost, r#"{"reason":"program_failed","signal":9}"#);
        assert_eq!(killed, "its program was killed by signal 9 (SIGKILL)");
        let gone = told(LeaderLost, r#"{"reason":"process_ended","witnessed":true}"#);
        assert_eq!(gone, "its process ended; its guardian noticed");
        let done = told(LeaderResigned, r#"{"exit_code":0}"#);
        assert_eq!(done, "resigned: its program exited with code 0");
    }

    #[test]
    fn an_election_that_a_success_has_closed_was_not_deleted() {
        use EventKind::{ElectionDeleted, LeaderElected, LeaderResigned};
        let history = |data| {
            let mut resigned = event(3, LeaderResigned, 1, data);
            resigned.node = Some(tenure::NodeId::new("alpha").unwrap());
            [event(1, LeaderElected, 1, "{}"), event(2, ElectionDeleted, 2, "{}"), resigned]
        };
        let closed = history(r#"{"exit_code":0}"#);
        let told = "resigned: its program ended with code 0, which closed the election";
        assert_eq!(words(&closed, 1).as_deref(), Some(told));
        assert_eq!(closed_by(&closed).as_deref(), Some("alpha"));
        for data in ["{}", r#"{"exit_code":1}"#] {
            assert_eq!(words(&history(data), 1).as_deref(), Some("resigned: the election was ended"));
            assert_eq!(closed_by(&history(data)), None);
        }
        // One that ended before anybody ended the election has not closed it.
        assert_eq!(closed_by(&[closed[2].clone(), closed[1].clone()]), None);
    }
}
