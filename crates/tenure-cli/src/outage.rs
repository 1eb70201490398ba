//! What people are told while the store is away: that it is, until when that does no harm, and that it is back.

use serde_json::json;
use tenure::{Node, NodeEvent, Reason};

use crate::output::{length, millis};
use crate::voice::Voice;

/// Tells of this node's store until the node has come to its end. With `losses` also of terms that are over for it:
/// `run` tells of its own.
pub fn tell(node: &Node, voice: Voice, losses: bool) -> tokio::task::JoinHandle<()> {
    let mut events = node.subscribe();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if let NodeEvent::LeaderLost { election, term, reason } = &event {
                if losses && !is_wanted(*reason) {
                    let next = match reason {
                        Reason::Lapsed => "; it stands again once the store answers",
                        _ => "",
                    };
                    let sentence =
                        format!("term {term} of `{election}` is over for this node: {reason}{next}");
                    let data = json!({"term": term.number(), "reason": reason.name()});
                    voice.say(event.name(), &sentence, data);
                }
                continue;
            }
            if let Some((sentence, data)) = sentence(&event) {
                voice.say(event.name(), &sentence, data);
            }
        }
    })
}

/// Whether somebody wanted it to be over, and knows.
fn is_wanted(reason: Reason) -> bool {
    matches!(reason, Reason::Asked | Reason::Closing | Reason::Ended | Reason::Resigned)
}

fn sentence(event: &NodeEvent) -> Option<(String, serde_json::Value)> {
    Some(match event {
        NodeEvent::StoreLost { problem } => {
            (format!("the store does not answer, trying again: {problem}"), json!({"problem": problem}))
        }
        NodeEvent::InJeopardy { left } => (
            format!(
                "in jeopardy: unless the store answers within {}, the session is over, and this node leads nothing",
                length(*left)
            ),
            json!({"left_ms": millis(*left)}),
        ),
        NodeEvent::StoreBack { away } => {
            (format!("the store answers again, after {}", length(*away)), json!({"away_ms": millis(*away)}))
        }
        _ => return None,
    })
}
