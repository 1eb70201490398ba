//! The ledgers: who owns which partition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenure_core::partitions::{Change, Holding, Page, Revision};
use tenure_core::{ElectionName, SessionId, TaskListName};
use tenure_store::{
    Arranged, Arrangement, Enlistment, EventKind, Leaf, LedgerQuery, Listed, Moves, Publication, Published,
    Release, StoreError, Survey, WorkerRecord,
};
use zookeeper_client::{Client, CreateMode, Error, MultiReadResult};

use crate::documents;
use crate::error::{Over, classify, foreign};
use crate::history::Transition;
use crate::inner::{Inner, Line, settle};
use crate::leaves::{Head, Leaves, judge, leaf_of};
use crate::multi::{Multi, Stopped};
use crate::view::{MOST, Pulses, View};

/// `ledgers/ELECTION/workers/SESSION`. It outlives the session, as long as the ledger names that.
#[derive(Serialize, Deserialize)]
struct WorkerDocument {
    node: String,
    document: String,
}

/// `ledgers/ELECTION/lists/NUMBER`.
#[derive(Serialize, Deserialize)]
struct ListDocument {
    name: String,
    revision: Revision,
    document: Option<String>,
}

fn failed(error: &Error) -> StoreError {
    classify(error, Over::Store)
}

/// All znodes in a folder, by name. A folder that is not there is empty.
async fn folder(client: &Client, path: &str) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
    let names = match client.list_children(path).await {
        Ok(names) => names,
        Err(Error::NoNode) => return Ok(Vec::new()),
        Err(error) => return Err(failed(&error)),
    };
    let mut found = Vec::with_capacity(names.len());
    for names in names.chunks(MOST) {
        let mut reader = client.new_multi_reader();
        for name in names {
            reader.add_get_data(&format!("{path}/{name}")).map_err(|error| failed(&error))?;
        }
        let read = reader.commit().await.map_err(|error| failed(&error))?;
        for (name, read) in names.iter().zip(read) {
            // What was removed meanwhile is not there.
            if let MultiReadResult::Data { data, .. } = read {
                found.push((name.clone(), data));
            }
        }
    }
    Ok(found)
}

/// Which of these znodes are there, and what they say.
async fn present(
    client: &Client,
    over: Over,
    sessions: &BTreeSet<SessionId>,
    path: impl Fn(SessionId) -> String,
) -> Result<BTreeMap<SessionId, String>, StoreError> {
    let looks = sessions.iter().map(|session| {
        let (session, path) = (*session, path(*session));
        async move {
            match client.get_data(&path).await {
                Ok((data, _)) => Ok(Some((session, String::from_utf8_lossy(&data).into_owned()))),
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(classify(&error, over)),
            }
        }
    });
    Ok(try_join_all(looks).await?.into_iter().flatten().collect())
}

pub(crate) async fn survey(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
) -> Result<Survey, StoreError> {
    let paths = inner.paths();
    let head = Head::read(inner, client, Over::Store, election).await?.document;
    let workers = paths.workers(election);
    let found = folder(client, &workers).await?;
    let live = client.list_children(&paths.sessions()).await.map_err(|error| failed(&error))?;
    let live: BTreeSet<String> = live.into_iter().collect();
    let mut named = BTreeSet::new();
    if found.iter().any(|(name, _)| !live.contains(name)) {
        let all = head.leaves.keys().cloned().collect();
        named = Leaves::read(inner, client, Over::Store, election, all).await?.owners();
    }
    let mut sessions = Vec::new();
    for (name, data) in &found {
        let session = documents::session(name, name)?;
        if live.contains(name) || named.contains(&session) {
            sessions.push((session, live.contains(name), documents::read::<WorkerDocument>(name, data)?));
        } else {
            // Nobody needs to know it any more.
            drop(client.delete(&format!("{workers}/{name}"), None)); // sent all the same
        }
    }
    let alive = sessions.iter().filter(|(_, live, _)| *live).map(|(session, ..)| *session);
    let pulses = Pulses::read(client, Over::Store, paths, alive).await?;
    let record = |(session, live, worker): (SessionId, bool, WorkerDocument)| {
        Ok(WorkerRecord {
            node: documents::node(&workers, &worker.node)?,
            session,
            pulse: live.then(|| pulses.of(session)),
            document: worker.document,
        })
    };
    let workers = sessions.into_iter().map(record).collect::<Result<_, StoreError>>()?;
    Ok(Survey { revision: head.revision, workers })
}

/// All at once, however much that is: it had to be read anyway.
pub(crate) async fn leaf(inner: &Inner, client: &Client, query: &LedgerQuery) -> Result<Leaf, StoreError> {
    let LedgerQuery { election, since, of } = query;
    let head = Head::read(inner, client, Over::Store, election).await?.document;
    let changed = head.leaves.iter().filter(|(_, revision)| **revision > *since);
    let changed = changed.map(|(name, _)| name.clone()).collect();
    let leaves = Leaves::read(inner, client, Over::Store, election, changed).await?;
    let mut entries = leaves.between(*since, head.revision);
    entries.retain(|entry| of.is_none() || entry.holding.owner() == *of);
    let notices = match of {
        Some(session) => notices(inner, client, *session).await?.unwrap_or(0),
        None => 0,
    };
    let mut lists = Vec::new();
    if head.arranged > *since {
        lists = task_lists(inner, client, election).await?;
        lists.retain(|list| list.revision > *since && list.revision <= head.revision);
    }
    let page = Page { revision: head.revision, published: head.published, notices, entries, more: false };
    Ok(Leaf { page, lists })
}

/// How often word was left for a session that is live.
async fn notices(inner: &Inner, client: &Client, session: SessionId) -> Result<Option<u64>, StoreError> {
    let stat = client.check_stat(&inner.paths().notices(session)).await.map_err(|error| failed(&error))?;
    Ok(stat.map(|stat| u64::try_from(stat.version).unwrap_or(0)))
}

async fn task_lists(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
) -> Result<Vec<Listed>, StoreError> {
    let path = inner.paths().task_lists(election);
    let listed = |(number, data): (String, Vec<u8>)| {
        let document: ListDocument = documents::read(&path, &data)?;
        Ok(Listed {
            name: TaskListName::new(document.name).map_err(|error| foreign(&path, &error.to_string()))?,
            number: number.parse().map_err(|_| foreign(&path, "a task list without a number"))?,
            revision: document.revision,
            document: document.document,
        })
    };
    let mut lists: Vec<Listed> =
        folder(client, &path).await?.into_iter().map(listed).collect::<Result<_, StoreError>>()?;
    lists.sort_by_key(|list| list.number);
    Ok(lists)
}

pub(crate) async fn publish(inner: &Arc<Inner>, publication: &Publication) -> Result<Published, StoreError> {
    let tenant = inner.expect_tenant(publication.lease.session).await?;
    // What it is judged by, others have written: the coordinator knows it by another connection.
    tenant.line().connected.catch_up(Over::Session).await?;
    settle(async || {
        let line = tenant.line();
        let (client, Publication { lease, after, changes, .. }) = (line.client(), publication);
        let view = View::read(client, Over::Session, inner.paths(), &lease.election).await?;
        if !view.holds(lease.session) || view.held() != Some(lease.term) {
            return Ok(Published::TermOver);
        }
        let head = Head::read(inner, client, Over::Session, &lease.election).await?;
        if head.document.published != *after {
            return Ok(Published::Overtaken);
        }
        let names = changes.iter().map(|change| leaf_of(change.partition())).collect();
        let mut leaves = Leaves::read(inner, client, Over::Session, &lease.election, names).await?;
        let revision = head.document.revision + 1;
        let applied = apply(inner, client, &lease.election, changes, &mut leaves, revision).await?;
        let Applied { refused, moves, nodes } = applied;
        if moves.is_empty() {
            return Ok(Published::Written { revision: revision - 1, refused });
        }
        let lists = task_lists(inner, client, &lease.election).await?;
        let node = |session| nodes.get(&session).cloned();
        let named =
            |number| lists.iter().find(|list| list.number == number).map(|list| list.name.to_string());
        let events = moves.events(revision, node, named);
        let news = (tenant.node.as_str(), events, moves.owners());
        write(inner, &line, lease.session, (&view, head, &leaves), news, true).await?;
        Ok(Published::Written { revision, refused })
    })
    .await
}

#[derive(Default)]
struct Applied {
    refused: Vec<tenure_core::partitions::Partition>,
    moves: Moves,
    /// Whose the sessions are that are concerned.
    nodes: BTreeMap<SessionId, String>,
}

async fn apply(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
    changes: &[Change],
    leaves: &mut Leaves,
    revision: Revision,
) -> Result<Applied, StoreError> {
    let heirs = changes.iter().filter_map(|change| match change {
        Change::Assign { to, .. } => Some(*to),
        Change::Revoke { .. } => None,
    });
    let heirs: BTreeSet<SessionId> = heirs.collect();
    let owners = changes.iter().filter_map(|change| leaves.entry(change.partition()).1.owner());
    let concerned: BTreeSet<SessionId> = owners.chain(heirs.iter().copied()).collect();
    let paths = inner.paths();
    let live = present(client, Over::Session, &concerned, |session| paths.session(session)).await?;
    let works = present(client, Over::Session, &heirs, |session| paths.worker(election, session)).await?;
    let mut applied = Applied { nodes: live, ..Applied::default() };
    for change in changes {
        let lives = |id: SessionId| applied.nodes.contains_key(&id);
        let works = |id: SessionId| works.contains_key(&id);
        let Some(holding) = judge(change, leaves, lives, works) else {
            applied.refused.push(change.partition());
            continue;
        };
        leaves.write(change.partition(), revision, holding);
        if let Some(owner) = holding.owner() {
            applied.moves.note(change, owner);
        }
    }
    Ok(applied)
}

/// Writes what was changed, with its lines of history, and leaves word for whom it concerns. Whoever of them
/// ends meanwhile makes it stale: then it is judged anew.
async fn write(
    inner: &Inner,
    line: &Line,
    session: SessionId,
    (view, mut head, leaves): (&View, Head, &Leaves),
    (node, events, told): (&str, Vec<(EventKind, Value)>, BTreeSet<SessionId>),
    published: bool,
) -> Result<(), Stopped> {
    let (client, election) = (line.client(), &view.election);
    let mut multi = Multi::new(client, Over::Session);
    multi.under(&inner.paths().session(session), line.number);
    let mut transition = Transition::of(view);
    for (kind, data) in events {
        transition.tell(kind, Some(node), view.document.granted, data);
    }
    let forgotten = transition.add_to(&mut multi, inner);
    let revision = head.document.revision + 1;
    leaves.add_to(&mut multi, inner, election, &mut head.document, revision);
    if published {
        head.document.published = revision;
    }
    head.add_to(&mut multi, inner, election);
    for session in told {
        multi.set(&inner.paths().notices(session), b"", None);
    }
    multi.commit().await?;
    forgotten.remove(client);
    Ok(())
}

pub(crate) async fn acknowledge(inner: &Arc<Inner>, release: &Release) -> Result<u64, StoreError> {
    let Release { election, session, released } = release;
    let tenant = inner.expect_tenant(*session).await?;
    // A revocation that the worker knows of must not be missed, or it is never acknowledged.
    tenant.line().connected.catch_up(Over::Session).await?;
    settle(async || {
        let line = tenant.line();
        let client = line.client();
        let view = View::read(client, Over::Session, inner.paths(), election).await?;
        let head = Head::read(inner, client, Over::Session, election).await?;
        let names = released.iter().map(|(partition, _)| leaf_of(*partition)).collect();
        let mut leaves = Leaves::read(inner, client, Over::Session, election, names).await?;
        let revision = head.document.revision + 1;
        let mut count = 0;
        for (partition, revoked) in released {
            if leaves.entry(*partition) == (*revoked, Holding::Revoking(*session)) {
                leaves.write(*partition, revision, Holding::Vacant);
                count += 1;
            }
        }
        if leaves.is_changed() {
            let data = json!({"revision": revision, "released": count});
            let events = vec![(EventKind::PartitionReleased, data)];
            let news = (tenant.node.as_str(), events, BTreeSet::from([*session]));
            write(inner, &line, *session, (&view, head, &leaves), news, false).await?;
        }
        Ok(notices(inner, client, *session).await?.ok_or(StoreError::SessionLost)?)
    })
    .await
}

pub(crate) async fn enlist(inner: &Arc<Inner>, enlistment: &Enlistment) -> Result<(), StoreError> {
    let Enlistment { election, session, document } = enlistment;
    let tenant = inner.expect_tenant(*session).await?;
    let data =
        documents::write(&WorkerDocument { node: tenant.node.to_string(), document: document.clone() });
    settle(async || {
        let line = tenant.line();
        let path = inner.paths().worker(election, *session);
        let mut multi = Multi::new(line.client(), Over::Session);
        multi.under(&inner.paths().session(*session), line.number);
        let there = line.client().check_stat(&path).await;
        if there.map_err(|error| classify(&error, Over::Session))?.is_some() {
            multi.set(&path, &data, None);
        } else {
            let head = Head::read(inner, line.client(), Over::Session, election).await?;
            if head.is_new() {
                head.add_to(&mut multi, inner, election);
            }
            multi.create(&path, &data, &inner.link.options(CreateMode::Persistent));
        }
        multi.commit().await.map(|_| ())
    })
    .await
}

pub(crate) async fn arrange(
    inner: &Inner,
    client: &Client,
    arrangement: &Arrangement,
) -> Result<Arranged, StoreError> {
    let Arrangement { election, list, seen, document } = arrangement;
    settle(async || {
        let mut head = Head::read(inner, client, Over::Store, election).await?;
        let lists = task_lists(inner, client, election).await?;
        let found = lists.iter().find(|listed| listed.name == *list);
        if let Some(found) = found.filter(|found| found.document == *document) {
            return Ok(Arranged::Written { number: found.number, revision: found.revision });
        }
        if found.map_or(0, |found| found.revision) != *seen {
            return Ok(Arranged::Overtaken);
        }
        // Numbers are never freed, so the next one is how many there are.
        let next = u32::try_from(lists.len()).unwrap_or(u32::MAX);
        let number = found.map_or(next, |found| found.number);
        let revision = head.document.revision + 1;
        (head.document.revision, head.document.arranged) = (revision, revision);
        let mut multi = Multi::new(client, Over::Store);
        head.add_to(&mut multi, inner, election);
        let path = format!("{}/{number}", inner.paths().task_lists(election));
        let data = ListDocument { name: list.to_string(), revision, document: document.clone() };
        match found {
            Some(_) => multi.set(&path, &documents::write(&data), None),
            None => {
                let persistent = inner.link.options(CreateMode::Persistent);
                multi.create(&path, &documents::write(&data), &persistent)
            }
        };
        multi.commit().await?;
        Ok(Arranged::Written { number, revision })
    })
    .await
}
