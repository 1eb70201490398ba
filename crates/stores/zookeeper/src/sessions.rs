//! Sessions: opened, renewed, closed. One session of Tenure is one session of ZooKeeper.

use std::sync::{Arc, Weak};

use futures_util::future::{join4, try_join_all};
use serde_json::{Value, json};
use tenure_core::{ElectionName, Opening, Renewal, Sequence, SessionId};
use tenure_store::{EventKind, Open, StoreError, clock};
use zookeeper_client::{Client, CreateMode, Error, MultiWriteResult};

use crate::documents::{self, NodeDocument, PulseDocument, State};
use crate::error::{Over, classify, foreign as not_ours};
use crate::foreign::{self, Foreign};
use crate::inner::{Inner, Line, Mark, Tenant, lock, settle};
use crate::link::Connected;
use crate::multi::{Multi, Stopped};
use crate::registry;
use crate::resignation::{Ending, leave};
use crate::view::Pulses;

pub(crate) async fn open(inner: &Arc<Inner>, request: &Open) -> Result<Opening, StoreError> {
    // One at a time: a repeated request finds what became of the first.
    let _turn = inner.opening.lock().await;
    if let Some(tenant) = inner.tenant(request.session) {
        renew(inner, request.session, request.sequence, 1).await?;
        return Ok(Opening::Opened { ttl: tenant.lease });
    }
    if lock(&inner.former).find(request.session).is_some() {
        return Err(StoreError::SessionLost);
    }
    // By its own process's word it is over: it must not be kept a moment longer.
    if let Some(superseded) = request.supersedes {
        inner.let_go(superseded);
    }
    let asked = clock::now();
    // Looked for before anything is ended, or connected: an occupied node id changes nothing.
    let store = inner.link.caught_up().await?;
    if let Found::Occupied(opening) = occupant(inner, &store.client, request).await? {
        return Ok(opening);
    }
    // A session of ZooKeeper is opened by a transaction: this connection has caught up.
    let connected = inner.link.open(request.ttl).await?;
    let granted = connected.client.session_timeout();
    if granted < request.ttl {
        return Err(StoreError::misconfigured(format!(
            "a session of {:?} is asked for, and ZooKeeper grants no more than {granted:?} (20 ticks, or \
             maxSessionTimeout): lower --ttl, or raise it on the servers",
            request.ttl
        )));
    }
    let allowance = inner.link.allowance(request.ttl, granted).await?;
    if let Some(superseded) = request.supersedes {
        end(inner, &store.client, superseded, Ending::Superseded).await?;
    }
    let registered = settle(async || match occupant(inner, &connected.client, request).await? {
        Found::Occupied(opening) => Ok(Some(opening)),
        Found::Free(known) => match register(inner, &connected, request, known).await {
            Err(Stopped::Failed(StoreError::Indeterminate(_))) => read_back(inner, &connected, request).await,
            other => other,
        }
        .map(|()| None),
    })
    .await?;
    if let Some(occupied) = registered {
        return Ok(occupied);
    }
    let tenant = Tenant::new(request, asked, connected, granted.saturating_sub(allowance));
    let lease = tenant.lease;
    // There is always a next time.
    let _ = inner.trim_log(&tenant.client()).await;
    let _ = registry::trim(inner, &tenant.client()).await;
    let tenant = Arc::new(tenant);
    tokio::spawn(lapse(Arc::downgrade(inner), Arc::downgrade(&tenant)));
    lock(&inner.tenants).insert(request.session, tenant);
    inner.moved.notify_one();
    Ok(Opening::Opened { ttl: lease })
}

/// Whether a node id is free, with what is known of the node: its document and that one's version.
enum Found {
    Free(Option<(NodeDocument, i32)>),
    Occupied(Opening),
}

async fn occupant(inner: &Inner, client: &Client, request: &Open) -> Result<Found, StoreError> {
    let path = inner.paths().node(&request.node.id);
    let (data, stat) = match client.get_data(&path).await {
        Ok(read) => read,
        Err(Error::NoNode) => return Ok(Found::Free(None)),
        Err(error) => return Err(classify(&error, Over::Store)),
    };
    let known: NodeDocument = documents::read(&path, &data)?;
    let session = documents::session(&path, &known.session)?;
    let lives = known.state == State::Live && {
        let there = client.check_stat(&inner.paths().session(session)).await;
        there.map_err(|error| classify(&error, Over::Store))?.is_some()
    };
    if session == request.session {
        // Opened by a request that nobody waited for, over a connection that is gone.
        return Err(StoreError::SessionLost);
    }
    if lives && request.supersedes != Some(session) {
        let pulses = Pulses::read(client, Over::Store, inner.paths(), [session]).await?;
        return Ok(Found::Occupied(Opening::Occupied { pulse: pulses.of(session) }));
    }
    Ok(Found::Free(Some((known, stat.version))))
}

async fn register(
    inner: &Inner,
    connected: &Connected,
    request: &Open,
    known: Option<(NodeDocument, i32)>,
) -> Result<(), Stopped> {
    let paths = inner.paths();
    let (node, session) = (request.node.id.as_str(), request.session);
    let mut multi = Multi::new(&connected.client, Over::Session);
    let ephemeral = inner.link.options(CreateMode::Ephemeral);
    let pulse = PulseDocument::new(request.sequence, connected.client.session_timeout());
    let path = paths.node(&request.node.id);
    let document = documents::write(&NodeDocument::new(&request.node, session));
    // Nobody has said yet that its last session is over.
    let expired = known.as_ref().is_some_and(|(known, _)| known.state == State::Live);
    match known {
        Some((_, version)) => multi.set(&path, &document, Some(version)),
        None => multi.create(&path, &document, &inner.link.options(CreateMode::Persistent)),
    };
    multi.create(&paths.session(session), node.as_bytes(), &ephemeral);
    multi.create(&paths.pulse(session), &documents::write(&pulse), &ephemeral);
    multi.create(&paths.grants(session), b"", &ephemeral);
    multi.create(&paths.notices(session), b"", &ephemeral);
    if expired {
        inner.tell_of_node(&mut multi, EventKind::NodeExpired, node, json!({}));
    }
    let info = &request.node;
    let joined = json!({
        "hostname": info.hostname, "address": info.address, "pid": info.pid, "version": info.version,
    });
    inner.tell_of_node(&mut multi, EventKind::NodeJoined, node, joined);
    multi.commit().await.map(|_| ())
}

/// The answer to a registration was lost. The session of ZooKeeper goes on: is it registered?
async fn read_back(inner: &Inner, connected: &Connected, request: &Open) -> Result<(), Stopped> {
    let there = connected.client.check_stat(&inner.paths().session(request.session)).await;
    match there.map_err(|error| classify(&error, Over::Session))? {
        Some(stat) if stat.ephemeral_owner == connected.client.session_id().0 => Ok(()),
        Some(_) => Err(StoreError::SessionLost.into()),
        None => Err(Stopped::Stale),
    }
}

pub(crate) async fn renew(
    inner: &Arc<Inner>,
    session: SessionId,
    sequence: Sequence,
    attempt: u32,
) -> Result<Renewal<ElectionName>, StoreError> {
    let asked = clock::now();
    let tenant = inner.expect_tenant(session).await?;
    // The driver looks for a server ever more seldom, and may believe in a dead connection for long.
    if attempt > 1 || !tenant.line().connected.is_usable() {
        tenant.refresh(inner).await?;
    }
    let renewed = match tenant.take_mark() {
        Some(mark) => renew_after(inner, &tenant, mark, sequence).await?,
        None => None,
    };
    let (renewal, mark) = match renewed {
        Some(renewed) => renewed,
        None => renew_anew(inner, &tenant, sequence).await?,
    };
    tenant.leave_mark(mark);
    *lock(&tenant.renewed) = asked;
    Ok(renewal)
}

/// In one request, if everything is as the last renewal has left it; nothing if it is not.
async fn renew_after(
    inner: &Inner,
    tenant: &Tenant,
    mark: Mark,
    sequence: Sequence,
) -> Result<Option<(Renewal<ElectionName>, Mark)>, StoreError> {
    let (line, paths) = (tenant.line(), inner.paths());
    let document = tenant.pulse(sequence);
    let mut multi = Multi::new(line.client(), Over::Session);
    multi.under(&paths.session(tenant.session), line.number);
    multi.unchanged(&paths.notices(tenant.session), mark.notices);
    multi.unchanged(&paths.grants(tenant.session), mark.grants);
    multi.set(&paths.pulse(tenant.session), &documents::write(&document), Some(mark.pulse));
    match multi.commit().await {
        Ok(done) => {
            let pulse = written(&line, &paths.pulse(tenant.session), &done)?;
            let renewed = Mark { pulse, sequence: document.sequence, ..mark };
            Ok(Some((renewed.renewal(mark.sequence), renewed)))
        }
        Err(Stopped::Stale) => Ok(None),
        Err(Stopped::Failed(error)) => Err(error),
    }
}

/// Whatever is there.
async fn renew_anew(
    inner: &Inner,
    tenant: &Tenant,
    sequence: Sequence,
) -> Result<(Renewal<ElectionName>, Mark), StoreError> {
    let (line, path) = (tenant.line(), inner.paths().pulse(tenant.session));
    let client = line.client();
    let document = tenant.pulse(sequence);
    // All on their way at once, and answered in this order: what is counted is counted after the write.
    let before = client.get_data(&path);
    let mut multi = Multi::new(client, Over::Session);
    multi.under(&inner.paths().session(tenant.session), line.number);
    multi.set(&path, &documents::write(&document), None);
    let done = multi.commit();
    let (notices, grants) = (inner.paths().notices(tenant.session), inner.paths().grants(tenant.session));
    let (notices, grants) = (client.check_stat(&notices), client.check_stat(&grants));
    let (before, done, notices, grants) = join4(before, done, notices, grants).await;
    let failed = |error: Error| match error {
        Error::NoNode => StoreError::SessionLost,
        error => classify(&error, Over::Session),
    };
    let done = done.map_err(|stopped| match stopped {
        Stopped::Stale => StoreError::SessionLost,
        Stopped::Failed(error) => error,
    })?;
    let pulse = written(&line, &path, &done)?;
    let (data, _) = before.map_err(failed)?;
    let previous = documents::read::<PulseDocument>(&path, &data)?.sequence;
    let count = |stat: Result<Option<zookeeper_client::Stat>, Error>| {
        Ok::<_, StoreError>(stat.map_err(failed)?.ok_or(StoreError::SessionLost)?.version)
    };
    let (notices, grants) = (count(notices)?, count(grants)?);
    let mark = Mark { pulse, sequence: document.sequence, notices, grants };
    Ok((mark.renewal(previous), mark))
}

/// The version that a renewal has given to the pulse, which must be of our session of ZooKeeper.
fn written(line: &Line, path: &str, done: &[MultiWriteResult]) -> Result<i32, StoreError> {
    match done.last() {
        Some(MultiWriteResult::SetData { stat }) if stat.ephemeral_owner == line.client().session_id().0 => {
            Ok(stat.version)
        }
        _ => Err(not_ours(path, "it is not owned by the session that it stands for")),
    }
}

/// Ends a session: everything under it is free. Unknown and closed ones are no error.
///
/// The store keeps it no longer, and the connection has caught up since then: a place that the session's own has made must
/// not be missed, or it would stay until the session times out.
pub(crate) async fn end(
    inner: &Inner,
    client: &Client,
    session: SessionId,
    ending: Ending,
) -> Result<(), StoreError> {
    if let Some(foreign) = &inner.foreign {
        return end_elsewhere(inner, foreign, client, session, ending).await;
    }
    let known = lock(&inner.former).find(session).map(|past| past.elections.clone());
    match known {
        // Its own words come to nothing from now on, and what it stood for is known.
        Some(elections) => {
            leave_all(inner, client, &elections, session, ending).await?;
            strike_off(inner, client, session, ending).await
        }
        // Somebody else's: its words come to nothing once it is struck off.
        None => {
            strike_off(inner, client, session, ending).await?;
            let elections = inner.elections(client).await?;
            leave_all(inner, client, &elections, session, ending).await
        }
    }
}

/// The same in the layout of another library, where candidates are known by their owner alone.
async fn end_elsewhere(
    inner: &Inner,
    foreign: &Foreign,
    client: &Client,
    session: SessionId,
    ending: Ending,
) -> Result<(), StoreError> {
    let there = client.check_stat(&inner.paths().session(session)).await;
    let Some(stat) = there.map_err(|error| classify(&error, Over::Store))? else { return Ok(()) };
    let known = lock(&inner.former).find(session).map(|past| past.elections.clone());
    let elections = match known {
        Some(elections) => elections,
        None => foreign::elections(foreign, client).await?,
    };
    let leaving = elections.iter().map(|name| foreign::leave(foreign, client, name, stat.ephemeral_owner));
    try_join_all(leaving).await?;
    strike_off(inner, client, session, ending).await
}

/// A session that its node does not renew lapses, though its connection lives: the node may be unwell, and
/// has stopped renewing so that another may lead. The driver would keep it for ever.
async fn lapse(inner: Weak<Inner>, tenant: Weak<Tenant>) {
    loop {
        let Some(strong) = tenant.upgrade() else { return };
        let due = *lock(&strong.renewed) + strong.granted;
        let now = clock::now();
        if now < due {
            drop(strong);
            tokio::time::sleep(due.since(now)).await;
            continue;
        }
        let Some(inner) = inner.upgrade() else { return };
        for path in [
            inner.paths().session(strong.session),
            inner.paths().pulse(strong.session),
            inner.paths().grants(strong.session),
            inner.paths().notices(strong.session),
        ] {
            drop(strong.client().delete(&path, None)); // sent all the same
        }
        for (election, seat) in lock(&strong.seats).iter() {
            if let Some(place) = &seat.place {
                drop(strong.client().delete(&format!("{}/{place}", inner.line_of(election)), None));
            }
        }
        // Answered after all of that: with its connection, what is still on its way would be dropped.
        let _ = strong.client().sync(&inner.paths().base).await;
        inner.let_go(strong.session);
        return;
    }
}

async fn leave_all(
    inner: &Inner,
    client: &Client,
    elections: &[ElectionName],
    session: SessionId,
    ending: Ending,
) -> Result<(), StoreError> {
    try_join_all(elections.iter().map(|election| leave(inner, client, election, session, ending)))
        .await
        .map(|_| ())
}

/// Removes the session's own znodes, and says so of its node. The connection has caught up.
async fn strike_off(
    inner: &Inner,
    client: &Client,
    session: SessionId,
    ending: Ending,
) -> Result<(), StoreError> {
    let paths = inner.paths();
    let failed = |error: Error| classify(&error, Over::Store);
    let struck = settle(async || {
        let path = paths.session(session);
        let data = match client.get_data(&path).await {
            Ok((data, _)) => data,
            Err(Error::NoNode) => return Ok(false),
            Err(error) => return Err(failed(error).into()),
        };
        let node = String::from_utf8(data).map_err(|error| not_ours(&path, &error.to_string()))?;
        let node_path = paths.node(&documents::node(&path, &node)?);
        let (data, stat) = client.get_data(&node_path).await.map_err(failed)?;
        let mut known: NodeDocument = documents::read(&node_path, &data)?;
        let mut multi = Multi::new(client, Over::Store);
        multi.delete(&path);
        if known.session == session.to_string() {
            known.state = State::Left;
            multi.set(&node_path, &documents::write(&known), Some(stat.version));
        }
        let data = match ending {
            Ending::Closed(cause) => Value::Object(cause.data()),
            Ending::Superseded => inner.superseded(session),
        };
        inner.tell_of_node(&mut multi, EventKind::NodeLeft, &node, data);
        multi.commit().await?;
        Ok(true)
    })
    .await?;
    if struck {
        for path in [paths.pulse(session), paths.grants(session), paths.notices(session)] {
            drop(client.delete(&path, None)); // sent all the same
        }
        let _ = inner.trim_log(client).await; // there is always a next time
    }
    Ok(())
}
