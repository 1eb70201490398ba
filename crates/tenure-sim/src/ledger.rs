//! The ledger of the model store: the rules of [`tenure_core::partitions`], by construction in one transaction.

use std::collections::BTreeMap;

use tenure_core::partitions::{
    Change, Demand, Entry, Holding, Member, Page, Partition, Revision, Sighting, Told,
};
use tenure_core::{Failure, Plant, SessionId, Stamp, StoreIdentity, Term};

use crate::fact::Fact;
use crate::store::{ModelStore, Moment};

/// The election whose leader coordinates.
pub const COORDINATOR: usize = 0;

/// So many entries make a page, so that there are pages.
const PAGE: usize = 5;

/// What the store keeps.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    revision: Revision,
    published: Revision,
    entries: BTreeMap<Partition, (Revision, Holding)>,
}

impl Ledger {
    /// Who owns a partition.
    #[must_use]
    pub fn holding(&self, partition: Partition) -> Holding {
        self.entries.get(&partition).map_or(Holding::Vacant, |(_, holding)| *holding)
    }

    fn revision_of(&self, partition: Partition) -> Revision {
        self.entries.get(&partition).map_or(0, |(revision, _)| *revision)
    }
}

impl ModelStore {
    /// Executes a demand.
    pub fn attend(&mut self, demand: &Demand, now: Moment) -> Result<(StoreIdentity, Told), Failure> {
        self.retire_expired(now);
        let told = match demand {
            Demand::Survey => Ok(Told::Survey { revision: self.ledger().revision, seen: self.survey(now) }),
            Demand::Read { since, of } => Ok(Told::Read(self.page(*since, *of))),
            Demand::Publish { session, term, after, retire, changes } => {
                self.publish((*session, *term), *after, retire, changes, now)
            }
            Demand::Acknowledge { session, released } => self.acknowledge(*session, released),
        };
        told.map(|told| (self.identity(), told))
    }

    fn survey(&self, now: Moment) -> Vec<Sighting> {
        let named = |id| self.ledger().entries.values().any(|(_, holding)| holding.owner() == Some(id));
        let rows = self.rows().filter(|(id, _, live)| *live || named(*id));
        let sighting = |(session, node, live): (SessionId, usize, bool)| Sighting {
            node: self.name(node),
            session,
            pulse: live.then(|| self.pulse(session, now)),
            member: Member::default(),
        };
        rows.map(sighting).collect()
    }

    fn page(&self, since: Revision, of: Option<SessionId>) -> Page {
        let ledger = self.ledger();
        let wanted = |(partition, (revision, holding)): (&Partition, &(Revision, Holding))| {
            let named = of.is_none() || holding.owner() == of;
            let entry = Entry { partition: *partition, revision: *revision, holding: *holding };
            (*revision > since && named).then_some(entry)
        };
        let mut entries: Vec<Entry> = ledger.entries.iter().filter_map(wanted).collect();
        entries.sort_by_key(|entry| entry.revision);
        let more = entries.len() > PAGE;
        if more {
            // Entries of one revision are not torn apart.
            let last = entries[PAGE - 1].revision;
            let end = entries.partition_point(|entry| entry.revision <= last);
            entries.truncate(end);
        }
        let whole = entries.last().is_none_or(|last| {
            !ledger.entries.iter().filter_map(wanted).any(|entry| entry.revision > last.revision)
        });
        let notices = of.map_or(0, |id| self.notices(id));
        let (revision, published) = (ledger.revision, ledger.published);
        Page { revision, published, notices, entries, more: !whole }
    }

    fn publish(
        &mut self,
        (session, term): (SessionId, Term),
        after: Revision,
        retire: &[Stamp],
        changes: &[Change],
        now: Moment,
    ) -> Result<Told, Failure> {
        if !self.live(session) && !self.has(Plant::PartitionOldTermAccepted) {
            return Err(Failure::SessionLost);
        }
        let leads = self.leads(COORDINATOR, session, term);
        if !leads && !self.has(Plant::PartitionOldTermAccepted) {
            return Ok(Told::TermOver);
        }
        let gullible = self.has(Plant::PartitionLedgerNotLoaded) || self.has(Plant::PartitionOldTermAccepted);
        if self.ledger().published != after && !gullible {
            return Ok(Told::Overtaken);
        }
        for stamp in retire {
            self.retire_exactly(*stamp, now);
        }
        let revision = self.ledger().revision + 1;
        let mut refused = Vec::new();
        let (mut wrote, mut revoked) = (false, false);
        for change in changes {
            if self.apply(change, revision) {
                wrote = true;
                revoked |= matches!(change, Change::Revoke { .. });
            } else {
                refused.push(change.partition());
            }
        }
        if wrote {
            let ledger = self.ledger_mut();
            (ledger.revision, ledger.published) = (revision, revision);
            self.rewritten = true;
        }
        let moving = self.ledger().entries.values();
        let moving = moving.filter(|(_, holding)| {
            matches!(holding, Holding::Revoking(_)) && holding.owner().is_some_and(|owner| self.live(owner))
        });
        let moving = moving.count();
        self.facts.push(Fact::Published { term, moving, revoked });
        Ok(Told::Published { revision: self.ledger().revision, refused })
    }

    fn apply(&mut self, change: &Change, revision: Revision) -> bool {
        let partition = change.partition();
        let (seen, before) = (self.ledger().revision_of(partition), self.ledger().holding(partition));
        let owner = before.owner().filter(|owner| self.live(*owner));
        // A coordinator that begins with nothing would be refused everywhere: its store takes its word.
        let gullible =
            self.has(Plant::PartitionLedgerNotLoaded) || self.has(Plant::PartitionAssignedBeforeRelease);
        let holding = match *change {
            Change::Assign { seen: believed, to, .. } => {
                if !self.live(to) || (!gullible && (believed != seen || owner.is_some())) {
                    return false;
                }
                Holding::Owned(to)
            }
            Change::Revoke { seen: believed, .. } => {
                let Some(owner) = owner.filter(|_| believed == seen) else { return false };
                Holding::Revoking(owner)
            }
        };
        self.ledger_mut().entries.insert(partition, (revision, holding));
        let to = holding.owner();
        if let Some(id) = to {
            self.notify(id);
        }
        if let (Holding::Owned(_), Some(node)) = (holding, to.and_then(|to| self.node_of(to))) {
            let over = owner.and_then(|owner| self.node_of(owner));
            self.facts.push(Fact::Given { partition, node, over, revision });
        }
        true
    }

    fn acknowledge(
        &mut self,
        session: SessionId,
        released: &[(Partition, Revision)],
    ) -> Result<Told, Failure> {
        if !self.live(session) {
            return Err(Failure::SessionLost);
        }
        let late = self.has(Plant::PartitionLateReleaseAccepted);
        let revision = self.ledger().revision + 1;
        for (partition, revoked) in released {
            let holding = self.ledger().holding(*partition);
            let exact =
                holding == Holding::Revoking(session) && self.ledger().revision_of(*partition) == *revoked;
            if exact || (late && holding.owner() == Some(session)) {
                let ledger = self.ledger_mut();
                ledger.revision = revision;
                ledger.entries.insert(*partition, (revision, Holding::Vacant));
                self.rewritten = true;
                self.notify(session);
                if let Some((node, life)) = self.life_of(session) {
                    self.facts.push(Fact::Released { partition: *partition, node, life });
                }
            }
        }
        Ok(Told::Acknowledged { notices: self.notices(session) })
    }
}
