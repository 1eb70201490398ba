//! Timers of many elections. Stale ones are not removed but recognised when they fire.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::request::ElectionKey;
use crate::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, ElectionKey)>>,
}

impl Timers {
    pub fn arm(&mut self, at: Instant, key: ElectionKey) {
        self.heap.push(Reverse((at, key)));
    }

    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Drops stale timers from the top, so that nobody is woken for one.
    pub fn prune(&mut self, armed: impl Fn(ElectionKey) -> Option<Instant>) {
        while let Some(Reverse((at, key))) = self.heap.peek() {
            if armed(*key) == Some(*at) {
                return;
            }
            self.heap.pop();
        }
    }

    /// The next timer that is due, stale or not.
    pub fn due(&mut self, now: Instant) -> Option<(Instant, ElectionKey)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(timer)| timer)
    }
}
