//! How many connections are open, and when it is time to give their memory back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fewer are not worth it.
const MANY: usize = 128;

/// Counts connections as they come and go. An allocator keeps what a flood of them has used; when half of
/// them are gone, it is told to let go.
#[derive(Debug, Default)]
pub(super) struct Tide {
    open: AtomicUsize,
    /// The most that were open since memory was last given back.
    high: AtomicUsize,
}

/// One of them.
pub(super) struct Open(Arc<Tide>);

impl Tide {
    pub(super) fn rise(self: &Arc<Self>) -> Open {
        let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.high.fetch_max(open, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// One is gone. Whether the tide is out.
    fn fall(&self) -> bool {
        let open = self.open.fetch_sub(1, Ordering::Relaxed) - 1;
        let high = self.high.load(Ordering::Relaxed);
        let out = high >= MANY && open <= high / 2;
        out && self.high.compare_exchange(high, open, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.0.fall() {
            tenure_sys::give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_each_time_that_half_of_many_are_gone() {
        let tide = Tide::default();
        let rise = |count: usize| {
            tide.open.fetch_add(count, Ordering::Relaxed);
            tide.high.fetch_max(tide.open.load(Ordering::Relaxed), Ordering::Relaxed);
        };
        let fall = |count: usize| (0..count).filter(|_| tide.fall()).count();
        rise(100);
        assert_eq!(fall(100), 0, "too few to care");
        rise(1000);
        assert_eq!(fall(499), 0);
        assert_eq!(fall(1), 1);
        assert_eq!(fall(500), 2, "at 250 and at 125");
    }
}
