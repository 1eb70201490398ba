//! The store itself: its identity, what it keeps, who listens, and the one lock.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tenure_core::{Namespace, StoreIdentity};
use tenure_replica::{Ages, Moment, Replica, Transaction};
use tenure_store::{Hints, Listeners, Options, Reply, StoreError, Told, clock};

pub(crate) struct World {
    identity: StoreIdentity,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    replica: Replica,
    listeners: BTreeMap<Namespace, Arc<Listeners>>,
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
        let mut state = self.state.lock().expect("no transaction panics");
        let moment = Moment { now: clock::now(), wall: SystemTime::now(), ages: Ages::Exact };
        let (outcome, news) = state.replica.transact(options, moment, verb);
        let listeners = state.listeners.get(&options.namespace).cloned();
        drop(state);
        if let Some(listeners) = listeners {
            news.post(&listeners);
        }
        outcome.map(|value| Told { store: self.identity, value })
    }

    pub(crate) fn subscribe(&self, namespace: &Namespace) -> Hints {
        let mut state = self.state.lock().expect("no transaction panics");
        state.listeners.entry(namespace.clone()).or_default().subscribe()
    }
}
