//! What people are told while the store is away: that it is, until when that does no harm, and that it is back.

use std::collections::BTreeSet;

use serde_json::json;
use tenure::{ElectionName, Node, NodeEvent, Reason};

use crate::output::{length, millis};
use crate::voice::Voice;

/// Tells of this node's store until the node has come to its end. With `losses` also of terms that are over for it:
/// `run` tells of its own.
pub fn tell(node: &Node, voice: Voice, losses: bool) -> tokio::task::JoinHandle<()> {
    let mut events = node.subscribe();
    tokio::spawn(async move {
        let mut led = BTreeSet::new();
        while let Some(event) = events.next().await {
            match &event {
                NodeEvent::LeaderElected { election, .. } => _ = led.insert(election.clone()),
                NodeEvent::LeaderLost { election, .. } | NodeEvent::LeaderResigned { election, .. } => {
                    led.remove(election);
                }
                _ => {}
            }
            if let NodeEvent::LeaderLost { election, term, reason } = &event {
                if losses && !is_wanted(*reason) {
                    let next = match reason {
                        Reason::Lapsed => "; it will stand again",
                        _ => "",
                    };
                    let sentence =
                        format!("term {term} of `{election}` is over for this node: {reason}{next}");
                    let data = json!({"term": term.number(), "reason": reason.name()});
                    voice.say(event.name(), &sentence, data);
                }
                continue;
            }
            if let Some((sentence, data)) = sentence(&event, &led) {
                voice.say(event.name(), &sentence, data);
            }
        }
    })
}

/// Whether somebody wanted it to be over, and knows.
fn is_wanted(reason: Reason) -> bool {
    matches!(reason, Reason::Asked | Reason::Closing | Reason::Ended | Reason::Resigned)
}

fn sentence(event: &NodeEvent, led: &BTreeSet<ElectionName>) -> Option<(String, serde_json::Value)> {
    Some(match event {
        NodeEvent::StoreLost { problem } => {
            (format!("the store does not answer, trying again: {problem}"), json!({"problem": problem}))
        }
        NodeEvent::InJeopardy { left } => (
            format!("in jeopardy: unless the store answers within {}, {}", length(*left), at_stake(led)),
            json!({"left_ms": millis(*left)}),
        ),
        NodeEvent::StoreBack { away } => {
            (format!("the store answers again, after {}", length(*away)), json!({"away_ms": millis(*away)}))
        }
        _ => return None,
    })
}

/// What ends with the session.
fn at_stake(led: &BTreeSet<ElectionName>) -> String {
    if led.is_empty() {
        return String::from("this node's session ends, and it has to register again");
    }
    let led: Vec<String> = led.iter().map(|election| format!("`{election}`")).collect();
    format!("this node no longer leads {}", led.join(", "))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_node_in_jeopardy_says_what_it_leads_or_that_it_leads_nothing() {
        let event = NodeEvent::InJeopardy { left: Duration::from_secs(3) };
        let told = |led: &[&str]| {
            let led = led.iter().map(|name| ElectionName::new(*name).unwrap()).collect();
            sentence(&event, &led).unwrap().0
        };
        assert_eq!(
            told(&["hourly", "nightly"]),
            "in jeopardy: unless the store answers within 3.0s, this node no longer leads `hourly`, `nightly`"
        );
        assert_eq!(
            told(&[]),
            "in jeopardy: unless the store answers within 3.0s, this node's session ends, and it has to register again"
        );
    }
}
