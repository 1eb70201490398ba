//! The ledgers: who owns which partition.

use std::collections::BTreeMap;

use rusqlite::{Row, params};
use serde_json::json;
use tenure_core::partitions::{Change, Entry, Holding, Page, Partition, Revision};
use tenure_core::{ElectionName, NodeId, SessionId};
use tenure_store::{
    Arranged, Arrangement, Enlistment, EventKind, LEDGER_PAGE, Leaf, LedgerQuery, Listed, Moves, Publication,
    Published, Release, Survey, WorkerRecord,
};

use super::Scope;
use super::contest::{Contest, term};
use super::sessions::{find, live, notices, retire};
use crate::error::Stop;
use crate::rows::{count, name, optional_session, pulse, session, whole};

/// A ledger under a verb.
struct Book<'a> {
    scope: &'a Scope<'a>,
    election: &'a str,
    revision: Revision,
    published: Revision,
}

impl<'a> Book<'a> {
    fn open(scope: &'a Scope<'a>, election: &'a ElectionName) -> Result<Self, Stop> {
        let election = election.as_str();
        let found = scope.one(
            "SELECT revision, published FROM tenure_ledgers WHERE namespace = ?1 AND election = ?2",
            [scope.namespace, election],
            |row| Ok((count(row, "revision")?, count(row, "published")?)),
        )?;
        let (revision, published) = found.unwrap_or_default();
        Ok(Self { scope, election, revision, published })
    }

    /// Everything that this verb changes has the next revision.
    fn save(&mut self, published: bool) -> Result<(), Stop> {
        self.revision += 1;
        if published {
            self.published = self.revision;
        }
        self.scope.execute(
            "INSERT INTO tenure_ledgers (namespace, election, revision, published) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET revision = ?3, published = ?4",
            params![self.scope.namespace, self.election, whole(self.revision)?, whole(self.published)?],
        )?;
        Ok(())
    }

    fn entry(&self, partition: Partition) -> Result<(Revision, Holding), Stop> {
        let found = self.scope.one(
            "SELECT * FROM tenure_partitions WHERE namespace = ?1 AND election = ?2 AND list = ?3 AND number = ?4",
            params![self.scope.namespace, self.election, partition.list, partition.number],
            entry,
        )?;
        Ok(found.map_or_else(Default::default, |entry| (entry.revision, entry.holding)))
    }

    /// Writes an entry with the revision that [`Book::save`] makes the ledger's.
    fn write(&self, partition: Partition, holding: Holding) -> Result<(), Stop> {
        self.scope.execute(
            "INSERT INTO tenure_partitions (namespace, election, list, number, revision, owner, revoking)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO UPDATE SET revision = ?5, owner = ?6, revoking = ?7",
            params![
                self.scope.namespace,
                self.election,
                partition.list,
                partition.number,
                whole(self.revision + 1)?,
                holding.owner().map(|owner| owner.to_string()),
                matches!(holding, Holding::Revoking(_)),
            ],
        )?;
        Ok(())
    }

    /// What a change makes of its entry, and whose that is, unless it is refused.
    fn judge(&self, change: &Change) -> Result<Option<(Holding, SessionId)>, Stop> {
        let (at, before) = self.entry(change.partition())?;
        let owner = match before.owner() {
            Some(owner) => find(self.scope, owner)?.map(|_| owner),
            None => None,
        };
        Ok(match *change {
            Change::Assign { seen, to, .. } => {
                let may = seen == at && owner.is_none() && self.works(to)?;
                may.then_some((Holding::Owned(to), to))
            }
            Change::Revoke { seen, .. } => {
                owner.filter(|_| seen == at).map(|owner| (Holding::Revoking(owner), owner))
            }
        })
    }

    fn works(&self, session: SessionId) -> Result<bool, Stop> {
        let found = self.scope.one(
            "SELECT 1 FROM tenure_workers w JOIN tenure_sessions s ON s.id = w.session AND s.state = 'live'
             WHERE w.namespace = ?1 AND w.election = ?2 AND w.session = ?3 AND s.namespace = ?1",
            params![self.scope.namespace, self.election, session.to_string()],
            |_| Ok(()),
        )?;
        Ok(found.is_some())
    }

    /// The nodes of those who are concerned.
    fn nodes(&self, moves: &Moves) -> Result<BTreeMap<SessionId, String>, Stop> {
        let node = |owner| Ok(find(self.scope, owner)?.map(|live| (owner, live.node.to_string())));
        moves.owners().into_iter().filter_map(|owner| node(owner).transpose()).collect()
    }

    /// The names of the task lists.
    fn lists(&self) -> Result<BTreeMap<u32, String>, Stop> {
        let rows = self.scope.all(
            "SELECT number, name FROM tenure_task_lists WHERE namespace = ?1 AND election = ?2",
            [self.scope.namespace, self.election],
            |row| Ok((row.get("number")?, row.get("name")?)),
        )?;
        Ok(rows.into_iter().collect())
    }

    /// Forgets workers whose session is over, and whom no entry names any more.
    fn dismiss(&self) -> Result<(), Stop> {
        self.scope.execute(
            "DELETE FROM tenure_workers AS w WHERE w.namespace = ?1 AND w.election = ?2
             AND NOT EXISTS (SELECT 1 FROM tenure_sessions s WHERE s.id = w.session AND s.state = 'live')
             AND NOT EXISTS (SELECT 1 FROM tenure_partitions p
                             WHERE p.namespace = ?1 AND p.election = ?2 AND p.owner = w.session)",
            [self.scope.namespace, self.election],
        )?;
        Ok(())
    }
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let holding = match (optional_session(row, "owner")?, row.get("revoking")?) {
        (None, _) => Holding::Vacant,
        (Some(owner), false) => Holding::Owned(owner),
        (Some(owner), true) => Holding::Revoking(owner),
    };
    let partition = Partition { list: row.get("list")?, number: row.get("number")? };
    Ok(Entry { partition, revision: count(row, "revision")?, holding })
}

pub(crate) fn survey(scope: &Scope<'_>, election: &ElectionName) -> Result<Survey, Stop> {
    let workers = scope.all(
        "SELECT w.session, w.node, w.document, s.sequence, s.ttl_ms, s.renewed_boot_ns, s.clock
         FROM tenure_workers w LEFT JOIN tenure_sessions s ON s.id = w.session AND s.state = 'live'
         WHERE w.namespace = ?1 AND w.election = ?2 AND (s.id IS NOT NULL OR EXISTS (
             SELECT 1 FROM tenure_partitions p
             WHERE p.namespace = ?1 AND p.election = ?2 AND p.owner = w.session))",
        [scope.namespace, election.as_str()],
        |row| {
            let session = session(row, "session")?;
            let live = row.get::<_, Option<i64>>("sequence")?.is_some();
            let pulse = live.then(|| pulse(row, session, &scope.moment)).transpose()?;
            Ok(WorkerRecord { node: name(row, "node")?, session, pulse, document: row.get("document")? })
        },
    )?;
    Ok(Survey { revision: Book::open(scope, election)?.revision, workers })
}

pub(crate) fn leaf(scope: &Scope<'_>, query: &LedgerQuery) -> Result<Leaf, Stop> {
    let book = Book::open(scope, &query.election)?;
    let notices = query.of.map_or(Ok(0), |of| notices(scope, of))?;
    let (entries, more) = changed(&book, query)?;
    let lists = scope.all(
        "SELECT * FROM tenure_task_lists WHERE namespace = ?1 AND election = ?2 AND revision > ?3
         ORDER BY number",
        params![scope.namespace, book.election, whole(query.since)?],
        |row| {
            Ok(Listed {
                name: name(row, "name")?,
                number: row.get("number")?,
                revision: count(row, "revision")?,
                document: row.get("document")?,
            })
        },
    )?;
    let page = Page { revision: book.revision, published: book.published, notices, entries, more };
    Ok(Leaf { page, lists })
}

/// Entries in the order of their revisions, and whether there are more: those of one revision stay together.
fn changed(book: &Book<'_>, query: &LedgerQuery) -> Result<(Vec<Entry>, bool), Stop> {
    let only = if query.of.is_some() { "owner = ?4" } else { "?4 IS NULL" };
    let rows = format!(
        "SELECT * FROM tenure_partitions WHERE namespace = ?1 AND election = ?2 AND revision > ?3 AND {only}"
    );
    let of = query.of.map(|session| session.to_string());
    let (scope, since) = (book.scope, whole(query.since)?);
    let last = i64::try_from(LEDGER_PAGE - 1).unwrap_or(i64::MAX);
    let end: Option<i64> = scope.one(
        &format!("{rows} ORDER BY revision LIMIT 1 OFFSET ?5"),
        params![scope.namespace, book.election, since, of, last],
        |row| row.get("revision"),
    )?;
    let entries = scope.all(
        &format!("{rows} AND revision <= ?5 ORDER BY revision, list, number"),
        params![scope.namespace, book.election, since, of, end.unwrap_or(i64::MAX)],
        entry,
    )?;
    let more = scope.one(
        &format!("{rows} AND revision > ?5 LIMIT 1"),
        params![scope.namespace, book.election, since, of, end.unwrap_or(i64::MAX)],
        |_| Ok(()),
    )?;
    Ok((entries, more.is_some()))
}

pub(crate) fn publish(scope: &Scope<'_>, publication: &Publication) -> Result<Published, Stop> {
    let Publication { lease, after, retire: silent, changes } = publication;
    let coordinator = live(scope, lease.session)?.node;
    let contest = Contest::load(scope, &lease.election)?;
    if contest.row.session != Some(lease.session) || term(contest.row.term) != lease.term {
        return Ok(Published::TermOver);
    }
    let mut book = Book::open(scope, &lease.election)?;
    if book.published != *after {
        return Ok(Published::Overtaken);
    }
    for stamp in silent {
        retire(scope, *stamp)?;
    }
    let (mut refused, mut moves) = (Vec::new(), Moves::default());
    for change in changes {
        let Some((holding, owner)) = book.judge(change)? else {
            refused.push(change.partition());
            continue;
        };
        book.write(change.partition(), holding)?;
        moves.note(change, owner);
    }
    leave_word(scope, moves.owners())?;
    book.dismiss()?;
    if !moves.is_empty() {
        book.save(true)?;
        let (nodes, lists) = (book.nodes(&moves)?, book.lists()?);
        let node = |session| nodes.get(&session).cloned();
        let mut contest = contest.reload()?;
        for (kind, data) in moves.events(book.revision, node, |list| lists.get(&list).cloned()) {
            contest.tell(kind, Some(&coordinator), contest.row.term, &data)?;
        }
        contest.save()?;
    }
    Ok(Published::Written { revision: book.revision, refused })
}

fn tell(
    mut contest: Contest<'_>,
    kind: EventKind,
    node: &NodeId,
    data: &serde_json::Value,
) -> Result<(), Stop> {
    contest.tell(kind, Some(node), contest.row.term, data)?;
    contest.save()
}

fn leave_word(scope: &Scope<'_>, sessions: impl IntoIterator<Item = SessionId>) -> Result<(), Stop> {
    for session in sessions {
        scope.execute(
            "UPDATE tenure_sessions SET notices = notices + 1 WHERE id = ?1",
            [session.to_string()],
        )?;
    }
    Ok(())
}

pub(crate) fn acknowledge(scope: &Scope<'_>, release: &Release) -> Result<u64, Stop> {
    let Release { election, session, released } = release;
    let node = live(scope, *session)?.node;
    let mut book = Book::open(scope, election)?;
    let mut count = 0;
    for (partition, revoked) in released {
        if book.entry(*partition)? == (*revoked, Holding::Revoking(*session)) {
            book.write(*partition, Holding::Vacant)?;
            count += 1;
        }
    }
    if count > 0 {
        book.save(false)?;
        leave_word(scope, [*session])?;
        let data = json!({"revision": book.revision, "released": count});
        tell(Contest::load(scope, election)?, EventKind::PartitionReleased, &node, &data)?;
    }
    notices(scope, *session)
}

pub(crate) fn enlist(scope: &Scope<'_>, enlistment: &Enlistment) -> Result<(), Stop> {
    let Enlistment { election, session, document } = enlistment;
    let node = live(scope, *session)?.node;
    scope.execute(
        "INSERT INTO tenure_workers (namespace, election, session, node, document) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET document = ?5",
        params![scope.namespace, election.as_str(), session.to_string(), node.as_str(), document],
    )?;
    Ok(())
}

pub(crate) fn arrange(scope: &Scope<'_>, arrangement: &Arrangement) -> Result<Arranged, Stop> {
    let Arrangement { election, list, seen, document } = arrangement;
    let found = scope.one(
        "SELECT number, revision, document FROM tenure_task_lists
         WHERE namespace = ?1 AND election = ?2 AND name = ?3",
        [scope.namespace, election.as_str(), list.as_str()],
        |row| Ok((row.get(0)?, count(row, "revision")?, row.get::<_, Option<String>>(2)?)),
    )?;
    match &found {
        Some((number, revision, before)) if before == document => {
            return Ok(Arranged::Written { number: *number, revision: *revision });
        }
        _ if found.as_ref().map_or(0, |(_, revision, _)| *revision) != *seen => {
            return Ok(Arranged::Overtaken);
        }
        _ => {}
    }
    let mut book = Book::open(scope, election)?;
    book.save(false)?;
    let revision = book.revision;
    // Numbers are never freed, so the next one is how many there are.
    let number = match found {
        Some((number, ..)) => number,
        None => scope
            .one(
                "SELECT count(*) FROM tenure_task_lists WHERE namespace = ?1 AND election = ?2",
                [scope.namespace, election.as_str()],
                |row| row.get(0),
            )?
            .unwrap_or_default(),
    };
    scope.execute(
        "INSERT INTO tenure_task_lists (namespace, election, number, name, revision, document)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET revision = ?5, document = ?6",
        params![scope.namespace, election.as_str(), number, list.as_str(), whole(revision)?, document],
    )?;
    Ok(Arranged::Written { number, revision })
}
