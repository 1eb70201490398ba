//! An event as a line: of text for people, of JSON for programs.

use serde::Serialize;
use serde_json::Value;
use tenure::EventRecord;

use crate::failure::Failure;
use crate::output::{self, FAINT, harmless, styled};

/// An event as programs read it: the same names as over HTTP.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub id: u64,
    pub time: String,
    pub event: &'static str,
    pub election: Option<String>,
    pub node: Option<String>,
    pub term: u64,
    pub data: Value,
}

impl Line {
    pub fn of(event: &EventRecord) -> Self {
        Self {
            id: event.id,
            time: output::timestamp(event.time),
            event: event.kind.name(),
            election: event.election.as_ref().map(ToString::to_string),
            node: event.node.as_ref().map(ToString::to_string),
            term: event.term.number(),
            // Whatever stands there is shown, even if somebody wrote it by hand.
            data: serde_json::from_str(&event.data).unwrap_or_else(|_| Value::String(event.data.clone())),
        }
    }
}

/// Prints an event.
pub fn print(event: &EventRecord, json: bool) -> Result<(), Failure> {
    match json {
        true => output::json(&Line::of(event)),
        false => output::say(text(event)),
    }
}

/// An event as people read it.
pub fn text(event: &EventRecord) -> String {
    let Line { event: name, election, node, term, data, .. } = Line::of(event);
    let moment = styled(FAINT, output::moment(event.time));
    // As wide as the longest name, so that what follows stands in a column.
    let mut line = format!("{moment}  {name:<18}");
    // Columns that hold names of usual length; one that is longer moves what follows.
    let (election, node) = (election.unwrap_or_default(), node.unwrap_or_default());
    let term = if term > 0 { format!("term {term}") } else { String::new() };
    line.push_str(&format!("  {election:<12}  {node:<14}  {term:<8}"));
    if let Value::Object(data) = data {
        let pairs = data.iter().filter(|(_, value)| !value.is_null());
        pairs.for_each(|(key, value)| line.push_str(&format!("  {key}={}", plain(value))));
    }
    line.truncate(line.trim_end().len());
    line
}

/// A value without quotes where it needs none.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if !text.contains([' ', '"', '=']) && !text.is_empty() => harmless(text),
        other => harmless(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use tenure::{ElectionName, EventKind, NodeId, Term};

    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = EventRecord {
            id: 7,
            sequence: 3,
            time: SystemTime::UNIX_EPOCH + Duration::from_micros(1_234_567),
            kind: EventKind::LeaderLost,
            election: ElectionName::new("nightly").ok(),
            node: NodeId::new("alpha").ok(),
            term: Term::new(4),
            data: String::from(r#"{"reason":"lapsed","address":null,"said":"so long"}"#),
        };
        let line = anstream::adapter::strip_str(&text(&event)).to_string();
        assert_eq!(
            line,
            "1970-01-01T00:00:01.234Z  leader_lost         nightly       alpha           term 4    reason=lapsed  said=\"so long\""
        );
        assert_eq!(Line::of(&event).time, "1970-01-01T00:00:01.234567Z");
    }
}
