//! An event as a line: of text for people, of JSON for programs.

use serde::Serialize;
use serde_json::Value;
use tenure::{EventRecord, TermEnd};

use super::ending::cause;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub led_until: Option<LedUntil>,
}

/// When a leader ceased to lead, where an event ends a term. The two differ only if it fell silent.
#[derive(Clone, Debug, Serialize)]
pub struct LedUntil {
    /// Until then it led for certain: its last renewal.
    pub earliest: String,
    /// It led no longer than that: the end of its lease.
    pub latest: String,
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
            led_until: TermEnd::of(event).map(|end| LedUntil {
                earliest: output::timestamp(end.earliest),
                latest: output::timestamp(end.latest),
            }),
        }
    }
}

/// How wide the columns are in which events are shown. They only grow: names are as long as their owners like.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    election: usize,
    node: usize,
    term: usize,
}

impl Default for Columns {
    /// Room for names of usual length.
    fn default() -> Self {
        Self { election: 12, node: 14, term: 8 }
    }
}

impl Columns {
    /// Wide enough for all of these.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Self {
        let mut columns = Self::default();
        events.into_iter().for_each(|event| columns.widen(event));
        columns
    }

    /// Wide enough for this one as well.
    pub fn widen(&mut self, event: &EventRecord) {
        let length = |name: &str| name.chars().count();
        self.election = self.election.max(event.election.as_ref().map_or(0, |name| length(name.as_str())));
        self.node = self.node.max(event.node.as_ref().map_or(0, |name| length(name.as_str())));
        self.term = self.term.max(term(event).len());
    }
}

fn term(event: &EventRecord) -> String {
    match event.term.number() {
        0 => String::new(),
        term => format!("term {term}"),
    }
}

/// Prints an event, in columns that are widened for it.
pub fn print(event: &EventRecord, json: bool, columns: &mut Columns) -> Result<(), Failure> {
    if json {
        return output::json(&Line::of(event));
    }
    columns.widen(event);
    output::say(text(event, *columns))
}

/// An event as people read it.
pub fn text(event: &EventRecord, columns: Columns) -> String {
    let Line { event: name, election, node, data, .. } = Line::of(event);
    let moment = styled(FAINT, output::moment(event.time));
    // As wide as the longest name, so that what follows stands in a column.
    let mut line = format!("{moment}  {name:<18}");
    let (election, node, term) = (election.unwrap_or_default(), node.unwrap_or_default(), term(event));
    let Columns { election: first, node: second, term: third } = columns;
    line.push_str(&format!("  {election:<first$}  {node:<second$}  {term:<third$}"));
    if let Value::Object(data) = data {
        let pairs = data.iter().filter(|(_, value)| !value.is_null());
        pairs.for_each(|(key, value)| line.push_str(&format!("  {key}={}", plain(value))));
        if let Some(cause) = cause(&Value::Object(data)) {
            line.push_str(&format!("  ({cause})"));
        }
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

    fn event() -> EventRecord {
        EventRecord {
            id: 7,
            sequence: 3,
            time: SystemTime::UNIX_EPOCH + Duration::from_micros(1_234_567),
            kind: EventKind::LeaderLost,
            election: ElectionName::new("nightly").ok(),
            node: NodeId::new("alpha").ok(),
            term: Term::new(4),
            data: String::from(r#"{"reason":"lapsed","address":null,"said":"so long"}"#),
        }
    }

    fn shown(event: &EventRecord, columns: Columns) -> String {
        anstream::adapter::strip_str(&text(event, columns)).to_string()
    }

    #[test]
    fn an_event_is_one_line() {
        let event = event();
        let line = shown(&event, Columns::default());
        assert_eq!(
            line,
            "1970-01-01T00:00:01.234Z  leader_lost         nightly       alpha           term 4    reason=lapsed  said=\"so long\""
        );
        assert_eq!(Line::of(&event).time, "1970-01-01T00:00:01.234567Z");
    }

    #[test]
    fn columns_are_as_wide_as_the_longest_name() {
        let (usual, mut long) = (event(), event());
        long.node = NodeId::new("ip-10-0-0-12.eu-west-1.compute.internal").ok();
        long.election = ElectionName::new("reports-of-the-previous-month").ok();
        long.term = Term::new(12_345_678);
        let columns = Columns::of([&usual, &long]);
        let reasons = [&usual, &long].map(|event| shown(event, columns).find("reason=").unwrap());
        assert_eq!(reasons[0], reasons[1]);
    }
}
