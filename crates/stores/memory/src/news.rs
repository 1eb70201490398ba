//! News: hints for everyone who listens, bounded for those who do not read them.

use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use tenure_core::ElectionName;
use tenure_store::Hint;

/// How many hints wait for a slow reader before they are replaced by [`Hint::All`].
const CAPACITY: usize = 1024;

/// The readers of one namespace.
#[derive(Default)]
pub(crate) struct Newsroom {
    readers: Vec<Weak<Mailbox>>,
}

impl Newsroom {
    pub(crate) fn subscribe(&mut self) -> Subscription {
        let mailbox = Arc::new(Mailbox::default());
        self.readers.retain(|reader| reader.strong_count() > 0);
        self.readers.push(Arc::downgrade(&mailbox));
        Subscription { mailbox }
    }

    pub(crate) fn readers(&self) -> Vec<Arc<Mailbox>> {
        self.readers.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for Newsroom {
    /// The last connection is gone, so nothing will ever happen again: the streams end.
    fn drop(&mut self) {
        for reader in self.readers() {
            reader.change(|letters| letters.closed = true);
        }
    }
}

#[derive(Default)]
pub(crate) struct Mailbox {
    letters: Mutex<Letters>,
}

#[derive(Default)]
struct Letters {
    hints: VecDeque<Hint>,
    closed: bool,
    reader: Option<Waker>,
}

impl Mailbox {
    pub(crate) fn post(&self, changed: &BTreeSet<ElectionName>) {
        self.change(|letters| {
            if letters.hints.len() + changed.len() > CAPACITY {
                letters.hints.clear();
                letters.hints.push_back(Hint::All);
            } else {
                letters.hints.extend(changed.iter().cloned().map(Hint::Election));
            }
        });
    }

    /// Wakes the reader only after the lock is released: it will want the lock.
    fn change(&self, change: impl FnOnce(&mut Letters)) {
        let mut letters = self.letters.lock().expect("no reader panics under the lock");
        change(&mut letters);
        let reader = letters.reader.take();
        drop(letters);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

/// A reader's end of the news.
pub(crate) struct Subscription {
    mailbox: Arc<Mailbox>,
}

impl Stream for Subscription {
    type Item = Hint;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Hint>> {
        let mut letters = self.mailbox.letters.lock().expect("no reader panics under the lock");
        match letters.hints.pop_front() {
            Some(hint) => Poll::Ready(Some(hint)),
            None if letters.closed => Poll::Ready(None),
            None => {
                letters.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn election(name: impl AsRef<str>) -> BTreeSet<ElectionName> {
        BTreeSet::from([ElectionName::new(name).unwrap()])
    }

    #[test]
    fn a_reader_that_falls_behind_is_told_to_look_at_everything() {
        let mut newsroom = Newsroom::default();
        let mut news = newsroom.subscribe();
        for number in 0..=CAPACITY {
            newsroom.readers()[0].post(&election(format!("e{number}")));
        }
        newsroom.readers()[0].post(&election("last"));
        assert_eq!(news.next().now_or_never(), Some(Some(Hint::All)));
        let last = ElectionName::new("last").unwrap();
        assert_eq!(news.next().now_or_never(), Some(Some(Hint::Election(last))));
        assert_eq!(news.next().now_or_never(), None);
    }

    #[test]
    fn a_reader_that_is_gone_is_forgotten_and_the_news_ends_with_the_store() {
        let mut newsroom = Newsroom::default();
        drop(newsroom.subscribe());
        assert!(newsroom.readers().is_empty());
        let mut news = newsroom.subscribe();
        assert_eq!(newsroom.readers.len(), 1);
        drop(newsroom);
        assert_eq!(news.next().now_or_never(), Some(None));
    }
}
