//! The ledgers: who owns which partition.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tenure_core::partitions::{Change, Entry, Holding, Page, Partition, Revision};
use tenure_core::{ElectionName, NodeId, SessionId, TaskListName, Term};
use tenure_store::{
    Arranged, Arrangement, Enlistment, EventKind, LEDGER_PAGE, Leaf, Lease, LedgerQuery, Listed, Moves,
    Publication, Published, Release, StoreError, Survey, WorkerRecord,
};

use crate::transaction::Transaction;

#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Ledger {
    revision: Revision,
    /// The revision of the last publication.
    published: Revision,
    entries: BTreeMap<Partition, (Revision, Holding)>,
    /// The entries in the order in which they were changed.
    order: BTreeSet<(Revision, Partition)>,
    /// The entries by the session that they name.
    shares: BTreeMap<SessionId, BTreeSet<Partition>>,
    workers: BTreeMap<SessionId, Worker>,
    /// By number.
    lists: Vec<List>,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Worker {
    node: NodeId,
    document: String,
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct List {
    name: TaskListName,
    revision: Revision,
    document: Option<String>,
}

impl Ledger {
    fn entry(&self, partition: Partition) -> (Revision, Holding) {
        self.entries.get(&partition).copied().unwrap_or_default()
    }

    fn write(&mut self, partition: Partition, revision: Revision, holding: Holding) {
        if let Some((before, held)) = self.entries.insert(partition, (revision, holding)) {
            self.order.remove(&(before, partition));
            if let Some(owner) = held.owner()
                && let Some(share) = self.shares.get_mut(&owner)
            {
                share.remove(&partition);
                if share.is_empty() {
                    self.shares.remove(&owner);
                }
            }
        }
        self.order.insert((revision, partition));
        if let Some(owner) = holding.owner() {
            self.shares.entry(owner).or_default().insert(partition);
        }
    }

    /// The entries that a reader asks for, in the order of their revisions.
    fn changed(&self, since: Revision, of: Option<SessionId>) -> Vec<(Revision, Partition)> {
        let Some(session) = of else {
            let first = Partition { list: 0, number: 0 };
            return self.order.range((since + 1, first)..).copied().collect();
        };
        let share = self.shares.get(&session).into_iter().flatten();
        let mut changed: Vec<_> = share.map(|partition| (self.entry(*partition).0, *partition)).collect();
        changed.retain(|(revision, _)| *revision > since);
        changed.sort_unstable();
        changed
    }

    fn page(&self, query: &LedgerQuery, notices: u64) -> Page {
        let mut changed = self.changed(query.since, query.of);
        let mut more = false;
        if let Some((last, _)) = changed.get(LEDGER_PAGE - 1).copied() {
            let end = changed.partition_point(|(revision, _)| *revision <= last);
            more = end < changed.len();
            changed.truncate(end);
        }
        let entry = |(revision, partition)| Entry { partition, revision, holding: self.entry(partition).1 };
        let entries = changed.into_iter().map(entry).collect();
        Page { revision: self.revision, published: self.published, notices, entries, more }
    }

    fn lists(&self, since: Revision) -> Vec<Listed> {
        let listed = |(number, list): (u32, &List)| Listed {
            name: list.name.clone(),
            number,
            revision: list.revision,
            document: list.document.clone(),
        };
        (0..).zip(&self.lists).filter(|(_, list)| list.revision > since).map(listed).collect()
    }
}

impl Transaction<'_> {
    fn ledger(&mut self, election: &ElectionName) -> &mut Ledger {
        self.space.ledgers.entry(election.clone()).or_default()
    }

    fn is_live(&self, session: SessionId) -> bool {
        self.space.sessions.get(&session).is_some_and(|session| session.is_live())
    }

    fn holds(&self, lease: &Lease) -> bool {
        let grant = self.space.elections.get(&lease.election).and_then(|election| election.grant.as_ref());
        grant.is_some_and(|grant| (grant.session, grant.term) == (lease.session, lease.term))
    }

    /// [`Ledger::survey`](tenure_store::Ledger::survey).
    #[must_use]
    pub fn survey(&self, election: &ElectionName) -> Survey {
        let Some(ledger) = self.space.ledgers.get(election) else { return Survey::default() };
        let record = |(id, worker): (&SessionId, &Worker)| {
            let live = self.space.sessions.get(id).filter(|session| session.is_live());
            let pulse = live.map(|session| session.pulse(*id, &self.moment));
            (pulse.is_some() || ledger.shares.contains_key(id)).then(|| WorkerRecord {
                node: worker.node.clone(),
                session: *id,
                pulse,
                document: worker.document.clone(),
            })
        };
        Survey { revision: ledger.revision, workers: ledger.workers.iter().filter_map(record).collect() }
    }

    /// [`Ledger::leaf`](tenure_store::Ledger::leaf).
    #[must_use]
    pub fn leaf(&self, query: &LedgerQuery) -> Leaf {
        let Some(ledger) = self.space.ledgers.get(&query.election) else { return Leaf::default() };
        let session = query.of.and_then(|of| self.space.sessions.get(&of));
        let notices = session.map_or(0, |session| session.notices);
        Leaf { page: ledger.page(query, notices), lists: ledger.lists(query.since) }
    }

    /// [`Ledger::publish`](tenure_store::Ledger::publish).
    ///
    /// # Errors
    /// [`StoreError::SessionLost`], and nothing changed.
    pub fn publish(&mut self, publication: &Publication) -> Result<Published, StoreError> {
        let Publication { lease, after, retire, changes } = publication;
        let coordinator = self.live(lease.session)?.info.id.clone();
        if !self.holds(lease) {
            return Ok(Published::TermOver);
        }
        if self.ledger(&lease.election).published != *after {
            return Ok(Published::Overtaken);
        }
        for stamp in retire {
            self.retire(*stamp);
        }
        let revision = self.ledger(&lease.election).revision + 1;
        let (mut refused, mut moves) = (Vec::new(), Moves::default());
        for change in changes {
            match self.apply(&lease.election, change, revision) {
                Some(owner) => moves.note(change, owner),
                None => refused.push(change.partition()),
            }
        }
        self.leave_word(moves.owners());
        self.dismiss(&lease.election);
        if !moves.is_empty() {
            let ledger = self.ledger(&lease.election);
            (ledger.revision, ledger.published) = (revision, revision);
            let node = |session| ledger.workers.get(&session).map(|worker| worker.node.to_string());
            let list =
                |number| ledger.lists.get(usize::try_from(number).ok()?).map(|list| list.name.to_string());
            for (kind, data) in moves.events(revision, node, list) {
                self.tell(kind, &lease.election, Some(&coordinator), lease.term, &data);
            }
        }
        let revision = self.ledger(&lease.election).revision;
        Ok(Published::Written { revision, refused })
    }

    /// Writes one change, unless it is refused; tells whom it concerns.
    fn apply(&mut self, election: &ElectionName, change: &Change, revision: Revision) -> Option<SessionId> {
        let partition = change.partition();
        let ledger = self.ledger(election);
        let (at, before) = ledger.entry(partition);
        let enlisted = |to| ledger.workers.contains_key(&to);
        let to_enlisted = matches!(*change, Change::Assign { to, .. } if enlisted(to));
        let owner = before.owner().filter(|owner| self.is_live(*owner));
        let holding = match *change {
            Change::Assign { seen, to, .. } => {
                let may = seen == at && owner.is_none() && to_enlisted && self.is_live(to);
                may.then_some(Holding::Owned(to))
            }
            Change::Revoke { seen, .. } => owner.filter(|_| seen == at).map(Holding::Revoking),
        }?;
        self.ledger(election).write(partition, revision, holding);
        holding.owner()
    }

    fn leave_word(&mut self, sessions: impl IntoIterator<Item = SessionId>) {
        for session in sessions {
            if let Ok(session) = self.live(session) {
                session.notices += 1;
            }
        }
    }

    /// Forgets workers whose session is over, and whom no entry names any more.
    fn dismiss(&mut self, election: &ElectionName) {
        let sessions = &self.space.sessions;
        let is_live = |id: &SessionId| sessions.get(id).is_some_and(|session| session.is_live());
        if let Some(ledger) = self.space.ledgers.get_mut(election) {
            let shares = &ledger.shares;
            ledger.workers.retain(|id, _| is_live(id) || shares.contains_key(id));
        }
    }

    /// [`Ledger::acknowledge`](tenure_store::Ledger::acknowledge).
    ///
    /// # Errors
    /// [`StoreError::SessionLost`], and nothing changed.
    pub fn acknowledge(&mut self, release: &Release) -> Result<u64, StoreError> {
        let Release { election, session, released } = release;
        let node = self.live(*session)?.info.id.clone();
        let ledger = self.ledger(election);
        let revision = ledger.revision + 1;
        let mut count = 0;
        for (partition, revoked) in released {
            if ledger.entry(*partition) == (*revoked, Holding::Revoking(*session)) {
                ledger.write(*partition, revision, Holding::Vacant);
                ledger.revision = revision;
                count += 1;
            }
        }
        if count > 0 {
            self.leave_word([*session]);
            let data = json!({"revision": revision, "released": count});
            let term = self.space.elections.get(election).map_or(Term::NONE, |election| election.granted);
            self.tell(EventKind::PartitionReleased, election, Some(&node), term, &data);
        }
        Ok(self.live(*session)?.notices)
    }

    /// [`Ledger::enlist`](tenure_store::Ledger::enlist).
    ///
    /// # Errors
    /// [`StoreError::SessionLost`], and nothing changed.
    pub fn enlist(&mut self, enlistment: Enlistment) -> Result<(), StoreError> {
        let Enlistment { election, session, document } = enlistment;
        let node = self.live(session)?.info.id.clone();
        self.ledger(&election).workers.insert(session, Worker { node, document });
        Ok(())
    }

    /// [`Ledger::arrange`](tenure_store::Ledger::arrange).
    pub fn arrange(&mut self, arrangement: Arrangement) -> Arranged {
        let Arrangement { election, list: name, seen, document } = arrangement;
        let ledger = self.ledger(&election);
        let next = ledger.revision + 1;
        let number = ledger.lists.iter().position(|list| list.name == name);
        let before = number.map(|number| &ledger.lists[number]);
        let place = u32::try_from(number.unwrap_or(ledger.lists.len())).unwrap_or(u32::MAX);
        match before {
            Some(list) if list.document == document => {
                return Arranged::Written { number: place, revision: list.revision };
            }
            _ if before.map_or(0, |list| list.revision) != seen => return Arranged::Overtaken,
            _ => {}
        }
        let list = List { name, revision: next, document };
        match number {
            Some(number) => ledger.lists[number] = list,
            None => ledger.lists.push(list),
        }
        ledger.revision = next;
        Arranged::Written { number: place, revision: next }
    }
}
