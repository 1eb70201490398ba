//! The elections of a node, by name and by the machine's key.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tenure_core::{ElectionKey, ElectionName, Machine, Term};
use tenure_store::Cause;
use tokio::sync::{oneshot, watch};

use crate::election::LeaderChange;
use crate::error::ElectionError;
use crate::gate::Doorplate;
use crate::office::Office;

/// What the driver knows of one election beside the machine.
pub(super) struct Slot {
    pub name: ElectionName,
    /// Handles of the application: while there are any, what is known is kept.
    pub handles: usize,
    pub candidate: Option<Candidate>,
    /// The grant, until its lease is given back.
    pub office: Option<Arc<Office>>,
    /// Who waits for that.
    pub released: Vec<oneshot::Sender<()>>,
    pub observers: Vec<watch::Sender<Option<LeaderChange>>>,
    pub last: Option<LeaderChange>,
    /// What its gates look at, while there are any.
    pub doorplate: Option<Arc<Doorplate>>,
    pub gates: usize,
}

/// Who waits for a grant.
pub(super) struct Candidate {
    pub id: u64,
    pub granted: oneshot::Sender<Result<Arc<Office>, ElectionError>>,
}

#[derive(Default)]
pub(super) struct Slots {
    by_name: HashMap<ElectionName, ElectionKey>,
    by_key: Vec<Option<Slot>>,
    highest: HighestTerms,
}

/// The highest terms of elections that were forgotten: a restored store must be told of them. Only the last
/// [`REMEMBERED`] are kept: an application may stand for elections without end, each under a name of its own.
#[derive(Default)]
struct HighestTerms {
    by_name: HashMap<ElectionName, (u64, Term)>,
    /// In the order in which they were forgotten.
    by_age: BTreeMap<u64, ElectionName>,
    next: u64,
}

const REMEMBERED: usize = 10_000;

impl HighestTerms {
    fn insert(&mut self, name: ElectionName, term: Term) {
        self.take(&name);
        self.next += 1;
        self.by_age.insert(self.next, name.clone());
        self.by_name.insert(name, (self.next, term));
        if self.by_age.len() > REMEMBERED
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_name.remove(&oldest);
        }
    }

    fn take(&mut self, name: &ElectionName) -> Option<Term> {
        let (age, term) = self.by_name.remove(name)?;
        self.by_age.remove(&age);
        Some(term)
    }
}

impl Slots {
    pub(super) fn find(&self, name: &ElectionName) -> Option<ElectionKey> {
        self.by_name.get(name).copied()
    }

    pub(super) fn get(&self, key: ElectionKey) -> Option<&Slot> {
        self.by_key.get(key.index())?.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: ElectionKey) -> Option<&mut Slot> {
        self.by_key.get_mut(key.index())?.as_mut()
    }

    /// Why the session is closed: if leases are yet to be given back, for the cause that they have in common.
    pub(super) fn cause_of_closing(&self) -> Cause {
        let offices = self.by_key.iter().flatten().filter_map(|slot| slot.office.as_ref());
        let mut causes = offices.map(|office| office.cause());
        let first = causes.next().unwrap_or_default();
        if causes.all(|cause| cause == first) { first } else { Cause::default() }
    }

    /// The key of this election, which is added if it is new.
    pub(super) fn key(&mut self, name: &ElectionName, machine: &mut Machine) -> ElectionKey {
        if let Some(key) = self.find(name) {
            return key;
        }
        let key = machine.add();
        if let Some(highest) = self.highest.take(name) {
            machine.remember(key, highest);
        }
        if self.by_key.len() <= key.index() {
            self.by_key.resize_with(key.index() + 1, || None);
        }
        self.by_key[key.index()] = Some(Slot {
            name: name.clone(),
            handles: 0,
            candidate: None,
            office: None,
            released: Vec::new(),
            observers: Vec::new(),
            last: None,
            doorplate: None,
            gates: 0,
        });
        self.by_name.insert(name.clone(), key);
        key
    }

    /// Forgets an election that nobody needs any more. Says whether it did.
    pub(super) fn tidy(&mut self, key: ElectionKey, machine: &mut Machine) -> bool {
        let Some(slot) = self.get(key) else { return false };
        let needed = slot.handles > 0
            || slot.candidate.is_some()
            || slot.office.is_some()
            || !slot.observers.is_empty();
        let highest = machine.highest(key);
        if needed || !machine.remove(key) {
            return false;
        }
        if let Some(slot) = self.by_key[key.index()].take() {
            if highest > Term::NONE {
                self.highest.insert(slot.name.clone(), highest);
            }
            self.by_name.remove(&slot.name);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> ElectionName {
        ElectionName::new(format!("election-{number}")).unwrap()
    }

    #[test]
    fn of_forgotten_elections_only_the_last_are_remembered() {
        let mut highest = HighestTerms::default();
        for number in 0..REMEMBERED * 3 {
            highest.insert(name(number), Term::new(7));
        }
        assert_eq!((highest.by_name.len(), highest.by_age.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(highest.take(&name(REMEMBERED * 2 - 1)), None, "forgotten for good");
        assert_eq!(highest.take(&name(REMEMBERED * 2)), Some(Term::new(7)));
    }

    #[test]
    fn an_election_that_comes_and_goes_takes_up_one_entry() {
        let mut highest = HighestTerms::default();
        for term in 1..100 {
            highest.insert(name(1), Term::new(term));
        }
        assert_eq!((highest.by_name.len(), highest.by_age.len()), (1, 1));
        assert_eq!(highest.take(&name(1)), Some(Term::new(99)));
        assert_eq!((highest.by_name.len(), highest.by_age.len()), (0, 0));
    }
}
