//! Orders on stdin, one per line: `VERB ELECTION [NODE]`.
//!
//! | order | meaning |
//! |---|---|
//! | `resign E` | give leadership up, and do not stand again before `stand E` |
//! | `transfer E NODE` | hand leadership over, and stand again |
//! | `dwell E` | stay inside a fenced transaction |
//! | `leave` | and leave it |
//! | `late E` | write once more under the last term that is over |
//! | `ping` | say `pong`, once all pauses until now have been told |
//! | `quit` | close the node; so does the end of stdin |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

use crate::ledger::{self, Entry};
use crate::report::say;
use crate::work::Desk;

/// What a candidate is told about one election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Resign,
    Stand,
    Transfer(String),
    Dwell,
}

/// Listens on a thread of its own: reading a pipe cannot be cancelled, so nothing may wait for it.
pub fn listen(desk: &Arc<Desk>) -> (BTreeMap<String, UnboundedReceiver<Order>>, CancellationToken) {
    let (mut senders, mut receivers) = (BTreeMap::new(), BTreeMap::new());
    for election in &desk.args.elections {
        let (sender, receiver) = unbounded_channel();
        senders.insert(election.clone(), sender);
        receivers.insert(election.clone(), receiver);
    }
    let (quit, desk) = (CancellationToken::new(), Arc::clone(desk));
    let (runtime, told) = (tokio::runtime::Handle::current(), quit.clone());
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if line == "quit" {
                break;
            }
            if line == "ping" {
                desk.watcher.ping();
            } else if line == "leave" {
                desk.leave.store(true, Release);
            } else if let Some(("late", election)) = line.split_once(' ') {
                runtime.spawn(write_late(Arc::clone(&desk), election.to_owned()));
            } else if pass_on(&line, &senders).is_none() {
                say("misunderstood", json!({ "order": line }));
            }
        }
        told.cancel();
    });
    (receivers, quit)
}

fn pass_on(line: &str, senders: &BTreeMap<String, UnboundedSender<Order>>) -> Option<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let order = match words.as_slice() {
        ["resign", _] => Order::Resign,
        ["stand", _] => Order::Stand,
        ["transfer", _, node] => Order::Transfer((*node).to_owned()),
        ["dwell", _] => Order::Dwell,
        _ => return None,
    };
    senders.get(words[1])?.send(order).ok()
}

/// What a leader does that wakes up too late: everything that it did before.
async fn write_late(desk: Arc<Desk>, election: String) {
    let Some(ghost) = desk.watcher.ghost(&election) else {
        return say("late", json!({ "election": election, "term": 0 }));
    };
    let entry = Entry::of(&ghost, &desk.args.node, 0, "late");
    let guarded = ledger::write(&ghost, entry.clone()).await;
    let fenced = ledger::write_unchecked(&**desk.node.store(), &ghost, entry.clone()).await;
    let register = desk.register.write(entry).await;
    say(
        "late",
        json!({ "election": election, "term": ghost.term().number(), "node": desk.args.node,
                "guarded": guarded, "fenced": fenced, "register": register }),
    );
}
