//! What the model store tells: records of elections, and pulses with their ages.

use std::time::Duration;

use tenure_core::{Age, Holder, NodeState, Pulse, Record, SessionId, Sighting, Stamp, Standing};

use super::{ModelStore, Moment, SessionRow};
use crate::config::Ages;

impl ModelStore {
    /// Every node with its newest session: a live one is newer than all that are over.
    pub(crate) fn nodes(&mut self, now: Moment) -> Vec<Sighting> {
        self.retire_expired(now);
        let newest = |node: usize| {
            let rows = self.state.sessions.iter().filter(move |row| row.node == node);
            rows.max_by_key(|row| (row.live, row.applied))
        };
        let rows = (0..self.names.len()).filter_map(newest);
        let sighting = |row: &SessionRow| Sighting {
            node: self.names[row.node].clone(),
            state: match (row.live, row.left) {
                (true, _) => NodeState::Live,
                (false, true) => NodeState::Left,
                (false, false) => NodeState::Expired,
            },
            pulse: self.pulse(row.id, now),
        };
        rows.map(sighting).collect()
    }

    pub(super) fn waiting(&self, election: usize, now: Moment) -> Standing {
        Standing::Waiting { seen: self.record(election, now) }
    }

    pub(crate) fn record(&self, election: usize, now: Moment) -> Record {
        let lease = &self.state.leases[election];
        let holder = lease.holder.filter(|id| self.live(*id)).map(|id| {
            let node = self.state.sessions.iter().find(|row| row.id == id).map_or(0, |row| row.node);
            Holder { node: self.names[node].clone(), term: lease.term, pulse: self.pulse(id, now) }
        });
        let (term, petition) = (lease.term.max(lease.floor), lease.petition.clone());
        Record { term, holder, ended: lease.ended, petition }
    }

    pub(crate) fn pulse(&self, id: SessionId, now: Moment) -> Pulse {
        let row = self.state.sessions.iter().find(|row| row.id == id);
        let Some(row) = row else {
            let stamp = Stamp { session: id, sequence: 0 };
            return Pulse { stamp, ttl: Duration::ZERO, age: Age::Unknown };
        };
        let age = match self.ages {
            Ages::Unknown => Age::Unknown,
            Ages::Exact => Age::Exact(now.local.since(row.applied_local)),
            Ages::Told => {
                let clock = self.clock.read(now.real);
                Age::Told {
                    age: clock.since(row.applied_clock),
                    clock: Duration::from_nanos(clock.as_nanos()),
                }
            }
        };
        Pulse { stamp: Stamp { session: id, sequence: row.sequence }, ttl: row.ttl, age }
    }
}
