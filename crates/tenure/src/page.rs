//! The session's deadline as guards see it: one atomic word per process, right even when the
//! driver is starved, stopped or dead.

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use tenure_core::{Instant, Reason};
use tenure_store::clock;
use tenure_sys::WipedOnFork;

use crate::reason;

/// The published deadline of one node's session.
pub(crate) struct Page {
    memory: WipedOnFork,
    /// Set where the kernel does not wipe the page in a forked child.
    pid: Option<u32>,
}

/// What a guard finds when it compares the clock with the deadline.
pub(crate) enum Sight {
    /// The session is held.
    Held,
    /// It is not, for this reason.
    Over(Reason),
}

impl Page {
    pub(crate) fn new() -> io::Result<Self> {
        let memory = WipedOnFork::new()?;
        memory.words().alive.store(1, Release);
        let pid = (!memory.wiped()).then(std::process::id);
        Ok(Self { memory, pid })
    }

    /// Whether this process is a fork of the one that made the page.
    pub(crate) fn forked(&self) -> bool {
        self.memory.words().alive.load(Acquire) == 0 || self.pid.is_some_and(|pid| pid != std::process::id())
    }

    /// Compares the clock with the deadline. A guard that finds the deadline passed ends the
    /// session for all: nobody, not even a driver that has a later deadline in hand, can revive
    /// what was once refused.
    pub(crate) fn look(&self) -> Sight {
        let words = self.memory.words();
        loop {
            let deadline = words.deadline.load(Acquire);
            let now = clock::now().as_nanos();
            if now < deadline && self.pid.is_none_or(|pid| pid == std::process::id()) {
                return Sight::Held;
            }
            if self.forked() {
                return Sight::Over(Reason::Forked);
            }
            if deadline == 0 {
                return Sight::Over(reason::decode(words.over.load(Acquire)).unwrap_or(Reason::Lapsed));
            }
            if words.deadline.compare_exchange(deadline, 0, Release, Relaxed).is_ok() {
                return Sight::Over(Reason::Lapsed);
            }
            // The driver moved the deadline while we looked: look again.
        }
    }

    /// The deadline that is published, if there is one.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let deadline = self.memory.words().deadline.load(Acquire);
        (deadline != 0).then(|| Instant::from_nanos(deadline))
    }

    /// Moves the deadline from `old`, as published before, to `new`. False if a guard has found
    /// `old` passed meanwhile: then the session is over, whatever the store says.
    pub(crate) fn publish(&self, old: Instant, new: Instant) -> bool {
        let words = self.memory.words();
        if old == Instant::ZERO {
            words.over.store(0, Release);
        }
        words.deadline.compare_exchange(old.as_nanos(), new.as_nanos(), Release, Relaxed).is_ok()
    }

    /// There is no session any more, for this reason.
    pub(crate) fn close(&self, reason: Reason) {
        let words = self.memory.words();
        words.over.store(reason::encode(reason), Release);
        words.deadline.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn over(page: &Page) -> Option<Reason> {
        match page.look() {
            Sight::Held => None,
            Sight::Over(reason) => Some(reason),
        }
    }

    #[test]
    fn a_deadline_that_was_found_passed_cannot_be_moved_any_more() {
        let page = Page::new().unwrap();
        let past = clock::now() - Duration::from_nanos(1);
        let later = clock::now() + Duration::from_secs(60);
        assert!(page.publish(Instant::ZERO, past));
        assert_eq!(over(&page), Some(Reason::Lapsed));
        assert!(!page.publish(past, later), "a late renewal comes too late");
        assert_eq!(over(&page), Some(Reason::Lapsed));
        page.close(Reason::Lapsed);
        assert!(page.publish(Instant::ZERO, later), "the next session starts afresh");
        assert_eq!(over(&page), None);
    }

    #[test]
    fn a_closed_page_says_why() {
        let page = Page::new().unwrap();
        assert!(page.publish(Instant::ZERO, clock::now() + Duration::from_secs(60)));
        page.close(Reason::ClockJumped);
        assert_eq!(over(&page), Some(Reason::ClockJumped));
        assert!(!page.forked());
    }
}
