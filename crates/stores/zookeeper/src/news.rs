//! News: watches. Hints, and never truth: when one is lost, waits are longer, and nothing else changes.
//!
//! Records are watched by everybody who listens, so that all hear who leads. Places in line are not: whoever
//! waits watches the one place before its own, so a departure wakes one candidate, however many wait. All is heard on
//! the connection of a session, if there is one: a node needs no other while nothing happens.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tenure_core::ElectionName;
use tenure_store::{EventKind, Hint, StoreError};
use zookeeper_client::{AddWatchMode, EventType, SessionState};

use crate::documents::{self, NodeDocument, State};
use crate::error::{Over, classify};
use crate::inner::{Inner, Tenant, lock};
use crate::link::Connected;
use crate::multi::Multi;
use crate::paths::election_of;

/// How soon a watch that was lost is set again.
const RETRY: Duration = Duration::from_millis(500);
/// How long after a change those who wait in line are told, who are woken by their predecessor if it
/// concerns them: a hand-over is two changes, and the second is the one to know.
const LEISURE: Duration = Duration::from_millis(100);
/// How many at the front of a line are told of such a change. The others learn of it when they look next, once per ttl:
/// however many wait, a hand-over makes only a few ask.
const NEAR: usize = 4;

/// Listens until nobody is left to tell.
pub(crate) async fn listen(inner: Weak<Inner>) {
    while let Some(strong) = inner.upgrade() {
        match hear(strong, &inner).await {
            Ok(Until::Moved) => continue,
            Ok(Until::Over) => {}
            Err(error) => tracing::debug!(%error, "news from ZooKeeper is interrupted"),
        }
        // Whatever happened since was not heard.
        if let Some(inner) = inner.upgrade() {
            inner.listeners.post(&Hint::All);
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Until when news was heard on a connection.
enum Until {
    /// It is over.
    Over,
    /// A session has one, which the node has anyway.
    Moved,
}

/// Listens on one connection.
async fn hear(strong: Arc<Inner>, inner: &Weak<Inner>) -> Result<Until, StoreError> {
    let stays = strong.link.is_given() || strong.of_session().is_some();
    let Connected { client, wire, .. } = strong.home().await?;
    let wire = Arc::downgrade(&wire);
    let folder = strong.paths().elections();
    let watch = client.watch(&folder, AddWatchMode::PersistentRecursive).await;
    let mut watch = watch.map_err(|error| classify(&error, Over::Store))?;
    // Only who comes and goes: their renewals are nobody's news.
    let nodes = client.watch(&strong.paths().sessions(), AddWatchMode::Persistent).await;
    let mut nodes = nodes.map_err(|error| classify(&error, Over::Store))?;
    // What happens to nodes that stay, such as that one is unhealthy.
    let log = client.watch(&strong.paths().log(), AddWatchMode::Persistent).await;
    let mut log = log.map_err(|error| classify(&error, Over::Store))?;
    // First listen, then look: in between, nothing can be missed.
    strong.listeners.post(&Hint::All);
    let moved = Arc::clone(&strong.moved);
    drop((strong, client));
    loop {
        let Some(driven) = wire.upgrade() else { return Ok(Until::Over) };
        let event = driven.unless_over(async {
            tokio::select! {
                event = watch.changed() => Some(event),
                event = nodes.changed() => Some(event),
                event = log.changed() => Some(event),
                () = moved.notified(), if !stays => None,
            }
        });
        drop(driven);
        let Some(event) = event.await else { return Ok(Until::Over) };
        let Some(event) = event else { return Ok(Until::Moved) };
        let Some(inner) = inner.upgrade() else { return Ok(Until::Over) };
        match (event.event_type, event.session_state) {
            // Changes during the interruption are not told.
            (EventType::Session, SessionState::SyncConnected) => inner.listeners.post(&Hint::All),
            (EventType::Session, state) if state.is_terminated() => return Ok(Until::Over),
            (EventType::Session, _) => {}
            (EventType::NodeChildrenChanged, _) => inner.listeners.post(&Hint::Nodes),
            _ => match election_of(&event.path) {
                Some(election) if event.path.len() > folder.len() => tell(&inner, election),
                _ => {}
            },
        }
    }
}

fn tell(inner: &Arc<Inner>, election: ElectionName) {
    match inner.standing_in(&election) {
        Some(ahead) if ahead >= NEAR => {}
        Some(_) => {
            let inner = Arc::downgrade(inner);
            tokio::spawn(async move {
                tokio::time::sleep(LEISURE).await;
                // Whoever leads meanwhile knows.
                if let Some(inner) = inner.upgrade().filter(|inner| inner.standing_in(&election).is_some()) {
                    inner.tell(&election);
                }
            });
        }
        None => inner.tell(&election),
    }
}

/// Has these znodes wake us when they go or change. False if one is not there.
pub(crate) async fn watch(
    inner: &Arc<Inner>,
    tenant: &Arc<Tenant>,
    election: &ElectionName,
    paths: impl Iterator<Item = String>,
) -> Result<bool, StoreError> {
    let fresh: Vec<String> = paths.filter(|path| !lock(&tenant.watched).contains(path)).collect();
    let connected = tenant.line().connected;
    let client = &connected.client;
    let asked = fresh.iter().map(|path| client.check_and_watch_stat(path));
    let mut all_there = true;
    for (path, answer) in fresh.iter().zip(join_all(asked.collect::<Vec<_>>()).await) {
        let (stat, watcher) = answer.map_err(|error| classify(&error, Over::Session))?;
        if stat.is_none() {
            all_there = false;
            continue;
        }
        if lock(&tenant.watched).insert(path.clone()) {
            let (inner, tenant) = (Arc::downgrade(inner), Arc::downgrade(tenant));
            let (election, path) = (election.clone(), path.clone());
            let goes = connected.wire.unless_over(watcher.changed());
            tokio::spawn(async move {
                goes.await;
                let (Some(tenant), Some(inner)) = (tenant.upgrade(), inner.upgrade()) else { return };
                lock(&tenant.watched).remove(&path);
                tenant.seat(&election, |seat| seat.woken = true);
                inner.listeners.post(&Hint::Named { election, node: tenant.node.clone() });
            });
        }
    }
    Ok(all_there)
}

/// Has an observer hear that the holder is gone: that changes no record.
pub(crate) async fn observe(
    inner: &Arc<Inner>,
    election: &ElectionName,
    path: String,
) -> Result<(), StoreError> {
    if !lock(&inner.observed).insert(path.clone()) {
        return Ok(());
    }
    let watching = async {
        let connected = inner.home().await?;
        let watched = connected.client.check_and_watch_stat(&path).await;
        Ok((connected, watched.map_err(|error| classify(&error, Over::Store))?))
    };
    let (connected, (stat, watcher)) = watching.await.inspect_err(|_| {
        lock(&inner.observed).remove(&path);
    })?;
    let goes = connected.wire.unless_over(async move {
        // It has gone already, or this server is behind: either way it is asked again.
        if stat.is_some() {
            watcher.changed().await;
        }
    });
    let (inner, election) = (Arc::downgrade(inner), election.clone());
    tokio::spawn(async move {
        goes.await;
        if let Some(inner) = inner.upgrade() {
            lock(&inner.observed).remove(&path);
            inner.tell(&election);
        }
    });
    Ok(())
}

/// Says of a node that it has expired, if nobody has. Servers that retire a session tell nobody, so whoever
/// notices does: a successor, or whoever lists the nodes.
pub(crate) fn expired(inner: &Arc<Inner>, node: &str, session: &str) {
    let (inner, node, session) = (Arc::clone(inner), node.to_owned(), session.to_owned());
    tokio::spawn(async move {
        if let Err(error) = strike_off(&inner, &node, &session).await {
            tracing::debug!(%error, node, "an expired node is not struck off yet");
        }
    });
}

async fn strike_off(inner: &Inner, node: &str, session: &str) -> Result<(), StoreError> {
    let connected = inner.link.caught_up().await?;
    let client = connected.client;
    let failed = |error| classify(&error, Over::Store);
    let path = inner.paths().node(&documents::node("elections", node)?);
    let pulse = inner.paths().session(documents::session(&path, session)?);
    let (data, stat) = client.get_data(&path).await.map_err(failed)?;
    let mut known: NodeDocument = documents::read(&path, &data)?;
    let lives = client.check_stat(&pulse).await.map_err(failed)?.is_some();
    if lives || known.session != session || known.state != State::Live {
        return Ok(());
    }
    known.state = State::Expired;
    let mut multi = Multi::new(&client, Over::Store);
    multi.set(&path, &documents::write(&known), Some(stat.version));
    inner.tell_of_node(&mut multi, EventKind::NodeExpired, node, json!({}));
    // Whoever was quicker has said it.
    let _ = multi.commit().await;
    inner.trim_log(&client).await
}
