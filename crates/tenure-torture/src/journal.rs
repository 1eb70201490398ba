//! What candidates say, in the order in which it was heard, and how to wait for it.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tenure_testkit::patience::HANG;

/// A line that a candidate said.
#[derive(Clone, Debug)]
pub struct Event {
    /// Of what.
    pub kind: String,
    /// Who said it.
    pub pid: u32,
    /// All of it.
    pub value: Value,
}

impl Event {
    /// A field of it; nothing if it has none.
    #[must_use]
    pub fn text(&self, field: &str) -> &str {
        self.value[field].as_str().unwrap_or("")
    }

    /// The term that it is about; 0 if it is about none.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.value["term"].as_u64().unwrap_or(0)
    }

    /// Whose node.
    #[must_use]
    pub fn node(&self) -> String {
        self.text("node").to_owned()
    }

    /// When it was said, in nanoseconds of the boot clock.
    ///
    /// # Panics
    /// If it was gibberish.
    #[must_use]
    pub fn at(&self) -> u64 {
        self.value["at"].as_u64().expect("whoever says something says when")
    }

    /// Whether it is about the same leadership.
    #[must_use]
    pub fn same_leadership(&self, other: &Self) -> bool {
        self.pid == other.pid
            && self.value["election"] == other.value["election"]
            && self.term() == other.term()
    }

    /// Whether this process said that.
    #[must_use]
    pub fn is(&self, kind: &str, pid: u32) -> bool {
        self.kind == kind && self.pid == pid
    }
}

/// Everything that was said.
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
    ///
    /// # Panics
    /// If it takes too long.
    pub fn wait<T>(&self, what: &str, mut find: impl FnMut(&[Event]) -> Option<T>) -> T {
        let end = tenure_store::clock::now() + HANG;
        let mut events = self.lock();
        loop {
            if let Some(found) = find(&events) {
                return found;
            }
            let left = end.since(tenure_store::clock::now());
            assert!(!left.is_zero(), "nothing was heard of this: {what}; but {}", tell(&events));
            events = self.heard.wait_timeout(events, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Also after a test has given up waiting: what was said then is the clue.
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process said that.
    #[must_use]
    pub fn heard(&self, kind: &str, pid: u32) -> bool {
        self.lock().iter().any(|event| event.is(kind, pid))
    }

    /// How often this process has said that.
    #[must_use]
    pub fn count(&self, kind: &str, pid: u32) -> usize {
        self.lock().iter().filter(|event| event.is(kind, pid)).count()
    }

    /// All of it, so far.
    #[must_use]
    pub fn all(&self) -> Vec<Event> {
        self.lock().clone()
    }
}

/// What was said, for people who have to find out what went wrong.
fn tell(events: &[Event]) -> String {
    let lines: Vec<String> = events.iter().map(|event| event.value.to_string()).collect();
    format!("this was said:\n{}", lines.join("\n"))
}

/// Who leads, by what was said: the last to be elected among those who are up.
#[must_use]
pub fn incumbent(events: &[Event], election: &str, up: &[u32]) -> Option<Event> {
    let elected = events.iter().filter(|event| event.kind == "elected" && event.text("election") == election);
    // By when it was said, not by when we heard it: every process has a pipe of its own.
    let last = elected.max_by_key(|event| event.at())?;
    let over = events.iter().any(|event| {
        matches!(event.kind.as_str(), "lost" | "resigned" | "closed") && event.same_leadership(last)
    });
    (up.contains(&last.pid) && !over).then(|| last.clone())
}
