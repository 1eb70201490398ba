//! Hints on their way to whoever listens to a store: bounded, without repetition, and never lost
//! silently.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use tenure_core::{ElectionName, NodeId};

use crate::contract::{Hint, Hints};

/// How many elections one listener may be behind before it is told to look at all of them.
const CAPACITY: usize = 16_384;

#[derive(Default)]
struct Waiting {
    /// With the only node that it concerns, if there is one.
    elections: BTreeMap<ElectionName, Option<NodeId>>,
    nodes: bool,
    all: bool,
    closed: bool,
    waker: Option<Waker>,
}

impl Waiting {
    /// What concerns one node, and beside that another or all, is for all to look at.
    fn note(&mut self, election: &ElectionName, named: Option<&NodeId>) {
        if let Some(waiting) = self.elections.get_mut(election) {
            if waiting.as_ref() != named {
                *waiting = None;
            }
        } else if self.elections.len() < CAPACITY {
            self.elections.insert(election.clone(), named.cloned());
        } else {
            self.note_all();
        }
    }

    /// Everything includes what was waiting.
    fn note_all(&mut self) {
        self.all = true;
        self.nodes = false;
        self.elections.clear();
    }
}

#[derive(Default)]
struct Mailbox(Mutex<Waiting>);

/// A poisoned lock is taken all the same: whatever the panic left, the next hint mends it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mailbox {
    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        let waker = {
            let mut waiting = lock(&self.0);
            change(&mut waiting);
            waiting.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn post(&self, hint: &Hint) {
        self.change(|waiting| match hint {
            _ if waiting.all => {}
            Hint::Election(election) => waiting.note(election, None),
            Hint::Named { election, node } => waiting.note(election, Some(node)),
            Hint::Nodes => waiting.nodes = true,
            Hint::All => waiting.note_all(),
        });
    }
}

struct Inbox(Arc<Mailbox>);

impl Stream for Inbox {
    type Item = Hint;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Hint>> {
        let mut waiting = lock(&self.0.0);
        if std::mem::take(&mut waiting.all) {
            return Poll::Ready(Some(Hint::All));
        }
        if let Some((election, named)) = waiting.elections.pop_first() {
            return Poll::Ready(Some(match named {
                Some(node) => Hint::Named { election, node },
                None => Hint::Election(election),
            }));
        }
        if std::mem::take(&mut waiting.nodes) {
            return Poll::Ready(Some(Hint::Nodes));
        }
        if waiting.closed {
            return Poll::Ready(None);
        }
        waiting.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Everybody who listens to the news of a store. Their streams end when this is dropped.
#[derive(Default)]
pub struct Listeners(Mutex<Vec<Weak<Mailbox>>>);

impl Listeners {
    /// One more: what [`Store::news`](crate::Store::news) gives.
    #[must_use]
    pub fn subscribe(&self) -> Hints {
        let mailbox = Arc::new(Mailbox::default());
        lock(&self.0).push(Arc::downgrade(&mailbox));
        Box::pin(Inbox(mailbox))
    }

    /// Tells everybody. Call it outside of locks: who is woken may ask the store at once.
    pub fn post(&self, hint: &Hint) {
        self.each(|mailbox| mailbox.post(hint));
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.each(|mailbox| mailbox.change(|waiting| waiting.closed = true));
    }

    fn each(&self, tell: impl Fn(&Mailbox)) {
        lock(&self.0).retain(|listener| listener.upgrade().map(|mailbox| tell(&mailbox)).is_some());
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn drain(hints: &mut Hints) -> Vec<Hint> {
        std::iter::from_fn(|| hints.next().now_or_never().flatten()).collect()
    }

    fn about(number: usize) -> Hint {
        Hint::Election(ElectionName::new(format!("e{number}")).unwrap())
    }

    #[test]
    fn a_hint_is_not_repeated_while_it_waits() {
        let listeners = Listeners::default();
        let mut hints = listeners.subscribe();
        for hint in [about(1), Hint::Nodes, about(2), about(1), Hint::Nodes] {
            listeners.post(&hint);
        }
        assert_eq!(drain(&mut hints), [about(1), about(2), Hint::Nodes]);
        listeners.post(&about(1));
        assert_eq!(drain(&mut hints), [about(1)]);
    }

    #[test]
    fn what_concerns_one_node_is_for_all_beside_what_concerns_another() {
        let listeners = Listeners::default();
        let mut hints = listeners.subscribe();
        let mut told = |posted: &[Hint]| {
            posted.iter().for_each(|hint| listeners.post(hint));
            drain(&mut hints)
        };
        let to = |node: &str| Hint::Named {
            election: ElectionName::new("e1").unwrap(),
            node: NodeId::new(node).unwrap(),
        };
        assert_eq!(told(&[to("a"), to("a")]), [to("a")]);
        assert_eq!(told(&[to("a"), to("b")]), [about(1)]);
        assert_eq!(told(&[to("a"), about(1)]), [about(1)]);
        assert_eq!(told(&[about(1), to("a")]), [about(1)]);
    }

    #[test]
    fn a_listener_that_falls_behind_is_told_to_look_at_everything() {
        let listeners = Listeners::default();
        let mut hints = listeners.subscribe();
        (0..=CAPACITY).for_each(|number| listeners.post(&about(number)));
        listeners.post(&about(7));
        assert_eq!(drain(&mut hints), [Hint::All]);
        listeners.post(&about(8));
        assert_eq!(drain(&mut hints), [about(8)]);
    }

    #[test]
    fn listeners_that_are_gone_are_forgotten_and_the_others_hear_the_end() {
        let listeners = Listeners::default();
        let (gone, mut stays) = (listeners.subscribe(), listeners.subscribe());
        drop(gone);
        listeners.post(&Hint::All);
        assert_eq!(lock(&listeners.0).len(), 1);
        drop(listeners);
        assert_eq!(drain(&mut stays), [Hint::All]);
        assert_eq!(stays.next().now_or_never(), Some(None));
    }
}
