//! Reads: what others see. The connection has caught up before.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::{join_all, try_join, try_join_all};
use tenure_core::{ElectionName, Record};
use tenure_store::{Candidate, NodeRecord, NodeState, Problem, StoreError, Unhealthy};
use zookeeper_client::{Client, Error, MultiReadResult, Stat};

use crate::documents::{self, NodeDocument, PulseDocument, State, UnhealthyDocument};
use crate::error::{Over, classify};
use crate::inner::Inner;
use crate::news;
use crate::view::{MOST, Pulses, View};

pub(crate) async fn read(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
) -> Result<(View, Record), StoreError> {
    let view = View::read(client, Over::Store, inner.paths(), election).await?;
    let holder = view.holder().map(|place| place.session);
    let pulses = Pulses::read(client, Over::Store, inner.paths(), holder).await?;
    let record = view.record(inner.paths(), &pulses)?;
    Ok((view, record))
}

pub(crate) async fn candidates(
    inner: &Inner,
    client: &Client,
    election: &ElectionName,
) -> Result<Vec<Candidate>, StoreError> {
    let view = View::read(client, Over::Store, inner.paths(), election).await?;
    let nodes = view.nodes(client, Over::Store, inner.paths()).await?;
    let line = inner.paths().line(election);
    view.waiting()
        .into_iter()
        .filter_map(|place| Some((nodes.get(&place.session)?, place.priority)))
        .map(|(node, priority)| Ok(Candidate { node: documents::node(&line, node)?, priority }))
        .collect()
}

pub(crate) async fn elections(
    inner: &Inner,
    client: &Client,
) -> Result<Vec<(ElectionName, Record)>, StoreError> {
    let names = inner.elections(client).await?;
    let mut records = Vec::with_capacity(names.len());
    for names in names.chunks(MOST) {
        let views = names.iter().map(|name| View::read(client, Over::Store, inner.paths(), name));
        let views = try_join_all(views).await?;
        let holders = views.iter().filter_map(|view| Some(view.holder()?.session));
        let pulses = Pulses::read(client, Over::Store, inner.paths(), holders).await?;
        for view in views {
            let record = view.record(inner.paths(), &pulses)?;
            records.push((view.election, record));
        }
    }
    Ok(records)
}

pub(crate) async fn nodes(inner: &Arc<Inner>, client: &Client) -> Result<Vec<NodeRecord>, StoreError> {
    let found = all(inner, client).await?;
    announce(inner, &found);
    let mut nodes: Vec<_> = found.into_iter().map(|found| found.record).collect();
    nodes.sort_by(|one, other| one.info.id.cmp(&other.info.id));
    Ok(nodes)
}

/// Forgets nodes that are no more. Nothing hangs from them.
pub(crate) async fn purge(
    inner: &Arc<Inner>,
    client: &Client,
    older_than: Duration,
) -> Result<u64, StoreError> {
    let mut purged = 0;
    let found = all(inner, client).await?;
    announce(inner, &found);
    for found in found {
        let age = SystemTime::now().duration_since(found.record.renewed_at).unwrap_or_default();
        if found.record.state == NodeState::Live || age <= older_than {
            continue;
        }
        match client.delete(&found.path, Some(found.version)).await {
            Ok(()) => purged += 1,
            Err(Error::NoNode | Error::BadVersion) => {} // it is back, or was forgotten by another
            Err(error) => return Err(classify(&error, Over::Store)),
        }
    }
    Ok(purged)
}

/// How many nodes are remembered that are no more: as many as on every store.
pub(crate) const MOST_ENDED: usize = 1_000;

/// How many nodes live, and how many are remembered that are no more.
pub(crate) async fn count(inner: &Inner, client: &Client) -> Result<(usize, usize), StoreError> {
    let (nodes, sessions) = (inner.paths().nodes(), inner.paths().sessions());
    let (nodes, live) = try_join(client.check_stat(&nodes), client.check_stat(&sessions))
        .await
        .map_err(|error| classify(&error, Over::Store))?;
    let children =
        |stat: Option<Stat>| stat.and_then(|stat| usize::try_from(stat.num_children).ok()).unwrap_or(0);
    let (nodes, live) = (children(nodes), children(live));
    Ok((live, nodes.saturating_sub(live)))
}

/// Forgets the oldest of those that are no more, if there are too many; some more than needed, since all have to be
/// read to find them.
pub(crate) async fn trim(inner: &Arc<Inner>, client: &Client) -> Result<(), StoreError> {
    if count(inner, client).await?.1 <= MOST_ENDED {
        return Ok(());
    }
    let mut ended = all(inner, client).await?;
    ended.retain(|found| found.record.state != NodeState::Live);
    ended.sort_by_key(|found| Reverse(found.record.opened_at));
    let oldest = ended.iter().skip(MOST_ENDED - MOST_ENDED / 10);
    let deleted: Vec<_> = oldest.map(|found| client.delete(&found.path, Some(found.version))).collect();
    join_all(deleted).await; // one that is back, or was forgotten by another, is left alone
    Ok(())
}

/// A node, and where that is written.
struct Found {
    record: NodeRecord,
    path: String,
    version: i32,
    /// Its session is over, and nobody has said so.
    unannounced: bool,
}

/// Whoever sees that a session is over says so.
fn announce(inner: &Arc<Inner>, found: &[Found]) {
    for found in found.iter().filter(|found| found.unannounced) {
        news::expired(inner, found.record.info.id.as_str(), &found.record.session().to_string());
    }
}

async fn all(inner: &Inner, client: &Client) -> Result<Vec<Found>, StoreError> {
    let failed = |error: Error| classify(&error, Over::Store);
    let folder = inner.paths().nodes();
    let listed = client.list_children(&folder).await.map_err(failed)?;
    let mut found = Vec::with_capacity(listed.len());
    for names in listed.chunks(MOST) {
        let paths: Vec<String> = names.iter().map(|name| format!("{folder}/{name}")).collect();
        let mut known = Vec::new();
        for (path, (data, stat)) in get(client, &paths).await? {
            let document: NodeDocument = documents::read(&path, &data)?;
            let session = documents::session(&path, &document.session)?;
            known.push((document, session, path, stat));
        }
        let sessions: Vec<_> = known.iter().map(|(_, session, ..)| inner.paths().pulse(*session)).collect();
        let live: HashMap<String, Content> = get(client, &sessions).await?.into_iter().collect();
        for ((document, session, path, stat), pulse_path) in known.into_iter().zip(sessions) {
            let renewed = live.get(&pulse_path);
            let unannounced = document.state == State::Live && renewed.is_none();
            let state = if unannounced { NodeState::Expired } else { document.state.into() };
            let pulse = match renewed {
                Some((data, _)) => documents::read::<PulseDocument>(&pulse_path, data)?.pulse(session),
                None => Pulses::default().of(session),
            };
            let record = NodeRecord {
                info: document.info(&path)?,
                state,
                pulse,
                opened_at: documents::time(document.opened_us),
                renewed_at: changed_at(renewed.map_or(&stat, |(_, stat)| stat)),
                unhealthy: document.unhealthy.map(|UnhealthyDocument { problem, since_us }| Unhealthy {
                    problem: Problem::new(&problem),
                    since: documents::time(since_us),
                }),
            };
            found.push(Found { record, path, version: stat.version, unannounced });
        }
    }
    Ok(found)
}

/// By the clock of the server that led then: for people to read.
fn changed_at(stat: &Stat) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(stat.mtime).unwrap_or(0))
}

type Content = (Vec<u8>, Stat);

/// Those of these znodes that are there.
async fn get(client: &Client, paths: &[String]) -> Result<Vec<(String, Content)>, StoreError> {
    let mut reader = client.new_multi_reader();
    for path in paths {
        reader.add_get_data(path).map_err(|error| classify(&error, Over::Store))?;
    }
    let read = reader.commit().await.map_err(|error| classify(&error, Over::Store))?;
    Ok(paths
        .iter()
        .zip(read)
        .filter_map(|(path, read)| match read {
            MultiReadResult::Data { data, stat } => Some((path.clone(), (data, stat))),
            _ => None,
        })
        .collect())
}
