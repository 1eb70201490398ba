//! The store itself: its identity, its namespaces, and the one lock.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};

use tenure_core::{Namespace, StoreIdentity};
use tenure_store::{Hint, Hints, Options, Reply, StoreError, Told, clock};

use crate::space::Space;
use crate::transaction::Transaction;

pub(crate) struct World {
    identity: StoreIdentity,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The id of the newest event of any namespace.
    last_event: u64,
    spaces: BTreeMap<Namespace, Space>,
}

impl World {
    pub(crate) fn new() -> Self {
        // The standard library's hasher is seeded by the system, which is random enough to tell
        // one store of a test from another.
        let random = || u128::from(RandomState::new().hash_one("tenure"));
        Self { identity: StoreIdentity(random() << 64 | random()), state: Mutex::default() }
    }

    pub(crate) fn identity(&self) -> StoreIdentity {
        self.identity
    }

    /// Applies a verb as a whole, then tells the readers of the namespace's news. Telling
    /// happens after the lock is released: a woken reader may claim at once.
    pub(crate) fn transact<T>(
        &self,
        options: &Options,
        verb: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError>,
    ) -> Reply<T> {
        let mut guard = self.state.lock().expect("no transaction panics");
        let state = &mut *guard;
        let mut transaction = Transaction {
            space: state.spaces.entry(options.namespace.clone()).or_default(),
            settled: state.last_event,
            last_event: &mut state.last_event,
            retention: options.retention,
            now: clock::now(),
            changed: Default::default(),
        };
        let outcome = verb(&mut transaction);
        let Transaction { space, changed, .. } = transaction;
        let listeners = Arc::clone(&space.listeners);
        drop(guard);
        changed.into_iter().for_each(|name| listeners.post(&Hint::Election(name)));
        outcome.map(|value| Told { store: self.identity, value })
    }

    pub(crate) fn subscribe(&self, namespace: &Namespace) -> Hints {
        let mut state = self.state.lock().expect("no transaction panics");
        state.spaces.entry(namespace.clone()).or_default().listeners.subscribe()
    }
}
