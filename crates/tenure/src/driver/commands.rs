//! What the handles ask for.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionKey, ElectionName, Instant, NodeId, Refusal};
use tenure_store::{Pending, Reply, Store, StoreError};

use super::Driver;
use super::slots::Candidate;
use crate::error::{ElectionError, Ending};
use crate::gate::Doorplate;
use crate::link::{Answered, Command};

impl Driver {
    pub(super) fn obey(&mut self, command: Command, now: Instant) {
        match command {
            Command::Hold(election) => {
                let key = self.slots.key(&election, &mut self.machine);
                if let Some(slot) = self.slots.get_mut(key) {
                    slot.handles += 1;
                }
            }
            Command::Release(election) => self.with(&election, |driver, key| {
                if let Some(slot) = driver.slots.get_mut(key) {
                    slot.handles = slot.handles.saturating_sub(1);
                }
            }),
            Command::Stand { election, id, granted } => {
                self.stand(&election, Candidate { id, granted }, now);
            }
            Command::Withdraw { election, id } => {
                self.with(&election, |driver, key| driver.withdraw(key, id, now));
            }
            Command::Resign { election, id, to } => {
                self.with(&election, |driver, key| driver.resign(key, id, to, false, now));
            }
            Command::Stopped { election, id } => {
                self.with(&election, |driver, key| driver.resign(key, id, None, true, now));
            }
            Command::Released { election, id, done } => {
                // Dropping the sender tells as much as sending: it is given back.
                self.with(&election, |driver, key| {
                    if let Some(slot) = driver.slots.get_mut(key)
                        && slot.office.as_ref().is_some_and(|office| office.id == id)
                    {
                        slot.released.push(done);
                    }
                });
            }
            Command::Observe { election, changes } => {
                let key = self.slots.key(&election, &mut self.machine);
                if let Some(slot) = self.slots.get_mut(key) {
                    if slot.last.is_some() {
                        changes.send_replace(slot.last.clone());
                    }
                    slot.observers.push(changes);
                    self.machine.observe(key, true, now);
                }
            }
            Command::Unobserve(election) => self.with(&election, |driver, key| driver.unobserve(key, now)),
            Command::OpenGate { election, doorplate } => {
                let key = self.slots.key(&election, &mut self.machine);
                self.open_gate(key, doorplate, now);
            }
            Command::CloseGate(election) => self.with(&election, |driver, key| {
                if let Some(slot) = driver.slots.get_mut(key) {
                    slot.gates = slot.gates.saturating_sub(1);
                }
                driver.unobserve(key, now);
            }),
            Command::Read(election, answer) => {
                self.ask_aside(answer, move |store| store.read(election));
            }
            Command::Candidates(election, answer) => {
                self.ask_aside(answer, move |store| store.candidates(election));
            }
            Command::Delete { election, force, answer } => {
                self.ask_aside(answer, move |store| store.delete(election, force));
            }
            Command::Work { election, list, assign } => self.work(&election, list, assign),
            Command::Rest { election, list } => self.rest(&election, &list),
            Command::PartitionStopped { election, partition, id } => {
                self.partition_stopped(&election, partition, id, now);
            }
            Command::Coordinate { election, term } => self.coordinate(&election, term, now),
            Command::Close(done) => {
                self.closers.push(done);
                self.machine.close(now);
            }
        }
    }

    /// Does something about an election that is known, and forgets it if nobody needs it any more.
    fn with(&mut self, election: &ElectionName, act: impl FnOnce(&mut Self, ElectionKey)) {
        if let Some(key) = self.slots.find(election) {
            act(self, key);
            self.tidy(key);
        }
    }

    fn stand(&mut self, election: &ElectionName, candidate: Candidate, now: Instant) {
        let key = self.slots.key(election, &mut self.machine);
        match self.machine.stand(key, now) {
            Ok(()) => {
                if let Some(slot) = self.slots.get_mut(key) {
                    slot.candidate = Some(candidate);
                }
                if let Some(failback) = &mut self.failback {
                    failback.stand(key, now);
                }
            }
            Err(refusal) => {
                let error = match refusal {
                    Refusal::NotEligible => ElectionError::NotEligible,
                    Refusal::AlreadyStanding | Refusal::NotLeading => ElectionError::AlreadyStanding,
                    Refusal::StillStopping => ElectionError::StillStopping,
                    Refusal::Closed => ElectionError::Closed(Ending::Closed),
                };
                let _ = candidate.granted.send(Err(error));
                self.tidy(key);
            }
        }
    }

    /// Nobody waits for this candidacy. If it was granted meanwhile, nobody works under it either.
    fn withdraw(&mut self, key: ElectionKey, id: u64, now: Instant) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        if slot.candidate.as_ref().is_some_and(|candidate| candidate.id == id) {
            slot.candidate = None;
            self.leave_failback(key);
            self.machine.withdraw(key, now);
        } else {
            self.resign(key, id, None, true, now);
        }
    }

    fn resign(&mut self, key: ElectionKey, id: u64, to: Option<NodeId>, stopped: bool, now: Instant) {
        let Some(slot) = self.slots.get(key) else { return };
        if slot.office.as_ref().is_none_or(|office| office.id != id) {
            return; // given back long ago
        }
        // Refused if it was lost before: then there is nothing to give up, but something to stop.
        let _ = self.machine.resign(key, to, now);
        if stopped {
            self.machine.stopped(key, now);
        }
    }

    fn unobserve(&mut self, key: ElectionKey, now: Instant) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        slot.observers.retain(|observer| !observer.is_closed());
        if slot.observers.is_empty() && slot.gates == 0 {
            slot.doorplate = None;
            self.machine.observe(key, false, now);
        }
    }

    fn open_gate(&mut self, key: ElectionKey, doorplate: Arc<Doorplate>, now: Instant) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.gates += 1;
            slot.doorplate = Some(doorplate);
            self.tell_gates(key);
            self.machine.observe(key, true, now);
        }
    }

    /// Tells the gates of an election who leads, and finds out where.
    pub(super) fn tell_gates(&mut self, key: ElectionKey) {
        let Some(slot) = self.slots.get(key) else { return };
        let (Some(doorplate), Some(change)) = (&slot.doorplate, &slot.last) else { return };
        let own = change.leader.as_ref() == Some(&self.info.id);
        let address = if own { self.info.address.clone() } else { None };
        if !doorplate.learn(change, address) || own {
            return;
        }
        let (store, doorplate, term) = (Arc::clone(&self.store), Arc::clone(doorplate), change.term);
        let (limit, pause) = (self.ttl.max(Duration::from_secs(1)), self.settings.poll_every);
        self.asides.push(Box::pin(async move {
            while doorplate.seeks(term) {
                if let Ok(Ok(told)) = tokio::time::timeout(limit, store.nodes()).await {
                    return doorplate.locate(term, &told.value);
                }
                tokio::time::sleep(pause).await;
            }
        }));
    }

    /// Asks the store for a handle. On the driver's runtime, as everything: a store's connections
    /// must not hang from a runtime that the application may block.
    fn ask_aside<T: Send + 'static>(
        &mut self,
        mut answer: Answered<T>,
        ask: impl for<'a> FnOnce(&'a dyn Store) -> Pending<'a, Reply<T>> + Send + 'static,
    ) {
        let store = Arc::clone(&self.store);
        let limit = self.ttl.max(Duration::from_secs(1));
        self.asides.push(Box::pin(async move {
            let asked = tokio::time::timeout(limit, ask(&*store));
            let reply = tokio::select! {
                reply = asked => reply,
                () = answer.closed() => return,
            };
            let reply = reply
                .unwrap_or_else(|_| Err(StoreError::indeterminate(format!("no answer within {limit:?}"))));
            let _ = answer.send(reply.map(|told| told.value));
        }));
    }
}
