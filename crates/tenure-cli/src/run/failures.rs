//! Copies of a program that failed one after the other, as the history tells it.

use std::time::Duration;

use serde_json::{Value, json};
use tenure::{EventKind, EventQuery, EventRecord};
use tenure_store::Limit;

use super::orders::End;
use super::supervisor::Supervisor;

/// How far back it is looked.
const HISTORY: u32 = 200;
/// How many copies are named at most.
const NAMED: usize = 10;

impl Supervisor<'_> {
    /// Says that the program has failed on every copy, if this was the last one that stood. `limit`: how long it may
    /// take to find out.
    pub async fn say_failed_in_turn(&self, end: End, limit: Duration) {
        let look = async {
            let others = self.election.candidates().await.ok()?;
            let leader = self.election.leader().await.ok()?;
            let others = others.into_iter().map(|other| other.node).chain(leader.map(|leader| leader.node));
            if others.into_iter().any(|node| node.as_str() != self.voice.node) {
                return None;
            }
            let (election, limit) = (Some(self.election.name().clone()), Some(Limit::Newest(HISTORY)));
            let query = EventQuery { election, after: 0, limit };
            Some(self.node.store().events(query).await.ok()?.value)
        };
        let Ok(Some(history)) = tokio::time::timeout(limit, look).await else { return };
        let before = failed_before(&history, &self.voice.node);
        if before.is_empty() {
            return;
        }
        let named: Vec<String> =
            before.iter().map(|(node, end)| format!("`{node}` ({})", short(*end))).collect();
        let sentence = format!(
            "the program has failed on one copy after the other: on {} and here ({}); no copy is left that stands",
            named.join(", "),
            short(end)
        );
        let nodes: Vec<&str> = before.iter().map(|(node, _)| node.as_str()).collect();
        self.voice.say("failed_in_turn", &sentence, json!({"nodes": nodes}));
    }
}

/// The other copies on which the program failed without a success in between, in the order in which they did.
fn failed_before(history: &[EventRecord], own: &str) -> Vec<(String, End)> {
    let ends = history
        .iter()
        .rev()
        .filter(|event| matches!(event.kind, EventKind::LeaderResigned | EventKind::LeaderLost));
    let mut failed: Vec<(String, End)> = Vec::new();
    for event in ends {
        match (&event.node, end(event)) {
            (Some(node), Some(end)) if end != End::Code(0) => {
                let known = failed.iter().any(|(known, _)| known == node.as_str());
                if node.as_str() != own && !known {
                    failed.push((node.to_string(), end));
                }
            }
            // A copy that ended in another way has not failed.
            _ => break,
        }
    }
    failed.truncate(NAMED);
    failed.reverse();
    failed
}

/// How the program ended that a term was for, if that is why the term ended.
fn end(event: &EventRecord) -> Option<End> {
    let data: Value = serde_json::from_str(&event.data).ok()?;
    let number = |key: &str| i32::try_from(data.get(key)?.as_i64()?).ok();
    number("exit_code").map(End::Code).or_else(|| number("signal").map(End::Signal))
}

fn short(end: End) -> String {
    match end {
        End::Code(code) => format!("code {code}"),
        End::Signal(signal) => format!("signal {signal}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use tenure::{ElectionName, NodeId, Term};

    use super::*;

    /// One term after the other, each with its leader and what is recorded of its end.
    fn history(terms: &[(&str, &str)]) -> Vec<EventRecord> {
        let event = |(at, (node, data)): (usize, &(&str, &str))| EventRecord {
            id: at as u64,
            sequence: at as u64,
            time: SystemTime::UNIX_EPOCH,
            kind: EventKind::LeaderResigned,
            election: ElectionName::new("nightly").ok(),
            node: NodeId::new(*node).ok(),
            term: Term::new(at as u64 + 1),
            data: (*data).to_owned(),
        };
        terms.iter().enumerate().map(event).collect()
    }

    fn told(terms: &[(&str, &str)]) -> Vec<String> {
        let failed = failed_before(&history(terms), "gamma");
        failed.into_iter().map(|(node, end)| format!("{node}: {}", short(end))).collect()
    }

    #[test]
    fn copies_that_failed_one_after_the_other_are_told_up_to_the_last_success() {
        let (three, killed, well) = (r#"{"exit_code":3}"#, r#"{"signal":9}"#, r#"{"exit_code":0}"#);
        let terms = [("delta", three), ("alpha", well), ("alpha", three), ("beta", killed), ("gamma", three)];
        assert_eq!(told(&terms), ["alpha: code 3", "beta: signal 9"]);
        assert_eq!(told(&terms[4..]), [""; 0], "it alone has failed");
        // One that was asked to make way has not failed.
        assert_eq!(told(&[("alpha", three), ("beta", "{}"), ("gamma", three)]), [""; 0]);
        assert_eq!(told(&[("alpha", three), ("alpha", three), ("gamma", three)]), ["alpha: code 3"]);
    }
}
