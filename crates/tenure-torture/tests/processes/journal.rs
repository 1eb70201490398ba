//! What candidates say, in the order in which it was heard, and how to wait for it.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::HANG;

/// A line that a candidate said.
#[derive(Clone, Debug)]
pub struct Event {
    pub kind: String,
    pub pid: u32,
    pub value: Value,
}

impl Event {
    pub fn text(&self, field: &str) -> &str {
        self.value[field].as_str().unwrap_or("")
    }

    pub fn term(&self) -> u64 {
        self.value["term"].as_u64().unwrap_or(0)
    }

    pub fn node(&self) -> String {
        self.text("node").to_owned()
    }

    /// Nanoseconds of the boot clock.
    pub fn at(&self) -> u64 {
        self.value["at"].as_u64().unwrap()
    }

    /// Whether it is about the same leadership.
    pub fn same_leadership(&self, other: &Self) -> bool {
        self.pid == other.pid
            && self.value["election"] == other.value["election"]
            && self.term() == other.term()
    }

    pub fn is(&self, kind: &str, pid: u32) -> bool {
        self.kind == kind && self.pid == pid
    }
}

#[derive(Default)]
pub struct Journal {
    events: Mutex<Vec<Event>>,
    heard: Condvar,
}

impl Journal {
    /// Writes down what a process says, on a thread of its own, until it says no more.
    pub fn listen(self: &Arc<Self>, pid: u32, mouth: impl Read + Send + 'static) {
        let journal = Arc::clone(self);
        std::thread::spawn(move || {
            for line in BufReader::new(mouth).lines().map_while(Result::ok) {
                let value: Value =
                    serde_json::from_str(&line).unwrap_or_else(|_| Value::String(line.clone()));
                let kind = value["event"].as_str().unwrap_or("gibberish").to_owned();
                journal.lock().push(Event { kind, pid, value });
                journal.heard.notify_all();
            }
        });
    }

    /// Waits until `find` finds what it looks for among everything that was said.
    pub fn wait<T>(&self, what: &str, mut find: impl FnMut(&[Event]) -> Option<T>) -> T {
        let end = tenure_store::clock::now() + HANG;
        let mut events = self.lock();
        loop {
            if let Some(found) = find(&events) {
                return found;
            }
            let left = end.since(tenure_store::clock::now());
            assert!(!left.is_zero(), "nothing was heard of this: {what}; but {}", tell(&events));
            events = self.heard.wait_timeout(events, left).unwrap().0;
        }
    }

    /// Also after a test has given up waiting: what was said then is the clue.
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn all(&self) -> Vec<Event> {
        self.lock().clone()
    }
}

/// What was said, for people who have to find out what went wrong.
fn tell(events: &[Event]) -> String {
    let lines: Vec<String> = events.iter().map(|event| event.value.to_string()).collect();
    format!("this was said:\n{}", lines.join("\n"))
}
