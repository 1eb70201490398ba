//! What the model store tells: records of elections, and pulses with their ages.

use std::time::Duration;

use tenure_core::{Age, Holder, Pulse, Record, SessionId, Stamp, Standing};

use super::{ModelStore, Moment};
use crate::config::Ages;

impl ModelStore {
    /// Who inherits from a leader that was asked to make way.
    pub(super) fn first_in_line(&self, election: usize) -> Option<usize> {
        let lease = &self.state.leases[election];
        lease.petition.as_ref().filter(|petition| petition.term == lease.term)?;
        let best = self.standing(election).map(|(_, priority)| priority).max();
        self.standing(election).find(|(_, priority)| Some(*priority) == best).map(|(node, _)| node)
    }

    pub(super) fn refused(&self, election: usize, outranked: bool, now: Moment) -> Standing {
        Standing::Refused { seen: self.record(election, now), outranked }
    }

    pub(super) fn record(&self, election: usize, now: Moment) -> Record {
        let lease = &self.state.leases[election];
        let holder = lease.holder.filter(|id| self.live(*id)).map(|id| {
            let node = self.state.sessions.iter().find(|row| row.id == id).map_or(0, |row| row.node);
            Holder { node: self.names[node].clone(), term: lease.term, pulse: self.pulse(id, now) }
        });
        let heir = lease.heir.map(|heir| self.names[heir].clone());
        let (term, petition) = (lease.term.max(lease.floor), lease.petition.clone());
        Record { term, holder, heir, ended: lease.ended, petition }
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
