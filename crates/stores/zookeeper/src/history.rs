//! The history: one znode per event, written in the transaction of what it tells.

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tenure_core::{ElectionName, SessionId, Term};
use tenure_store::{EventKind, EventQuery, EventRecord, Limit, Retention, StoreError};
use zookeeper_client::{Client, CreateMode, Error, MultiReadResult};

use crate::documents::{self, ElectionDocument, EventDocument, HolderDocument, event_id};
use crate::error::{Over, classify};
use crate::inner::{Inner, Tenant};
use crate::multi::Multi;
use crate::paths::election_of;
use crate::view::{MOST, View};

/// Every event is a znode in the memory of every server.
const MOST_KEPT: u64 = 1_000;

/// How many events are kept of one election, and of the nodes together.
pub(crate) fn kept(retention: Retention) -> u64 {
    u64::from(retention.events).clamp(1, MOST_KEPT)
}

/// A change of an election's record, with what there is to tell of it.
pub(crate) struct Transition<'a> {
    view: &'a View,
    pub document: ElectionDocument,
    events: Vec<EventDocument>,
}

impl<'a> Transition<'a> {
    pub(crate) fn of(view: &'a View) -> Self {
        Self { view, document: view.document.clone(), events: Vec::new() }
    }

    pub(crate) fn tell(&mut self, kind: EventKind, node: Option<&str>, term: u64, data: Value) {
        self.document.events += 1;
        let mut event = EventDocument::new(kind, node, term, data);
        event.sequence = self.document.events;
        // They are one transition, and happen at one time.
        if let Some(first) = self.events.first() {
            event.time_us = first.time_us;
        }
        event.index = u8::try_from(self.events.len()).unwrap_or(u8::MAX);
        self.events.push(event);
    }

    /// The first to stand since the beginning, or since an end, starts the election.
    pub(crate) fn start(&mut self, node: &str) {
        if !std::mem::replace(&mut self.document.stood, true) {
            let term = self.document.term().number();
            self.tell(EventKind::ElectionStarted, Some(node), term, json!({}));
        }
    }

    /// Tells of whoever held the last term and did not give it up.
    pub(crate) fn lose(&mut self, inner: &Inner, taker: Option<&Tenant>) {
        if let Some(lost) = self.document.holder.take() {
            let data = inner.loss(&lost, taker);
            self.tell(EventKind::LeaderLost, Some(&lost.node), lost.term, data);
        }
    }

    /// Grants the next term, which is free, to a candidate.
    pub(crate) fn grant(&mut self, session: SessionId, node: &str) -> Term {
        self.start(node);
        let term = self.document.term().next();
        let document = &mut self.document;
        document.granted = term.number();
        let (session, term_number) = (session.to_string(), term.number());
        document.holder = Some(HolderDocument { session, node: node.to_owned(), term: term_number });
        let previous = document.last_leader.replace(node.to_owned()).filter(|previous| previous != node);
        self.tell(EventKind::LeaderElected, Some(node), term.number(), json!({}));
        if let Some(previous) = previous {
            let data = json!({"previous": previous, "new": node});
            self.tell(EventKind::LeaderChanged, Some(node), term.number(), data);
        }
        term
    }

    /// Makes the change part of a transaction.
    pub(crate) fn add_to(&mut self, multi: &mut Multi<'_>, inner: &Inner) -> Forgotten {
        let (paths, election) = (inner.paths(), &self.view.election);
        let forgotten = self.forget(kept(inner.options.retention));
        let persistent = inner.link.options(CreateMode::Persistent);
        let (path, data) = (paths.election(election), documents::write(&self.document));
        match self.view.version {
            Some(version) => {
                multi.set(&path, &data, Some(version));
            }
            None => {
                multi.create(&path, &data, &persistent);
                multi.create(&paths.line(election), b"", &persistent);
                multi.create(&paths.history(election), b"", &persistent);
            }
        }
        for event in &self.events {
            let path = paths.event(election, event.sequence);
            multi.create(&path, &documents::write(event), &persistent);
        }
        Forgotten(forgotten.map(|sequence| paths.event(election, sequence)).collect())
    }

    /// The newest are kept, and the transition under way is kept whole.
    fn forget(&mut self, kept: u64) -> std::ops::Range<u64> {
        let newest = self.document.events;
        let oldest = self.document.oldest.max(1);
        let whole = newest + 1 - self.events.len() as u64;
        self.document.oldest = (newest + 1).saturating_sub(kept).clamp(oldest, whole.max(oldest));
        oldest..self.document.oldest
    }
}

/// Events that are kept no longer: nobody reads them any more once the transaction is done.
pub(crate) struct Forgotten(Vec<String>);

impl Forgotten {
    /// Removes them, without waiting: what is left over is not shown.
    pub(crate) fn remove(self, client: &Client) {
        for path in self.0 {
            drop(client.delete(&path, None)); // sent all the same
        }
    }
}

/// The part of the history that is asked for, oldest first.
pub(crate) async fn read(
    inner: &Inner,
    client: &Client,
    query: EventQuery,
) -> Result<Vec<EventRecord>, StoreError> {
    let elections = match &query.election {
        Some(election) => vec![election.clone()],
        None => inner.elections(client).await?,
    };
    // Histories are read one after the other. What happens meanwhile is left for the next time, or a
    // reader who goes on after the newest of it would miss what came before in one that was read already.
    let horizon = horizon(inner, client, elections, &query).await?;
    let mut events = Vec::new();
    for (election, oldest) in &horizon.changed {
        let folder = inner.paths().history(election);
        events.extend(read_folder(client, &folder, Some(election), query.after, *oldest).await?);
    }
    if horizon.log {
        events.extend(read_folder(client, &inner.paths().log(), None, query.after, 0).await?);
    }
    events.retain(|event| event.id <= horizon.last);
    events.sort_by_key(|event| event.id);
    let count = query.limit.map_or(usize::MAX, |limit| usize::try_from(limit.count()).unwrap_or(usize::MAX));
    match query.limit {
        Some(Limit::Newest(_)) => drop(events.drain(..events.len().saturating_sub(count))),
        _ => events.truncate(count),
    }
    Ok(events)
}

/// How far the history goes, and where there is something new for the reader.
struct Horizon {
    last: u64,
    /// Elections whose record was written after the newest event that the reader knows, with the oldest event that is
    /// kept. An event is written with the record, so there is nothing new in the history of any other.
    changed: Vec<(ElectionName, u64)>,
    /// Something was added to the log of nodes, which the reader wants to know.
    log: bool,
}

/// Reads the record of every election, also when only one has changed: one listing and one multi-read per [`MOST`]
/// elections, all of them on their way at once, so two round trips and about 80 KB for every 256 elections. News does not
/// make it less. One cursor (`after`) stands for all histories, so a reader that is given the newest event of an election
/// goes on behind it, and misses an older event of another election whose news comes later or is lost.
async fn horizon(
    inner: &Inner,
    client: &Client,
    elections: Vec<ElectionName>,
    query: &EventQuery,
) -> Result<Horizon, StoreError> {
    let failed = |error: Error| classify(&error, Over::Store);
    let newest = |zxid| event_id(zxid, u8::MAX >> 4);
    let mut horizon = Horizon { last: 0, changed: Vec::new(), log: false };
    // All on their way at once.
    let mut asked = Vec::new();
    for elections in elections.chunks(MOST) {
        let mut reader = client.new_multi_reader();
        for election in elections {
            reader.add_get_data(&inner.paths().election(election)).map_err(failed)?;
        }
        asked.push(reader.commit());
    }
    let read = try_join_all(asked).await.map_err(failed)?;
    for (election, read) in elections.into_iter().zip(read.into_iter().flatten()) {
        let MultiReadResult::Data { data, stat } = read else { continue };
        horizon.last = horizon.last.max(newest(stat.mzxid));
        if newest(stat.mzxid) > query.after {
            let path = inner.paths().election(&election);
            let oldest = documents::read::<ElectionDocument>(&path, &data)?.oldest;
            horizon.changed.push((election, oldest));
        }
    }
    if query.election.is_none()
        && let Some(stat) = client.check_stat(&inner.paths().log()).await.map_err(failed)?
    {
        horizon.last = horizon.last.max(newest(stat.pzxid));
        horizon.log = newest(stat.pzxid) > query.after;
    }
    Ok(horizon)
}

/// Reads a folder from its newest event down to the one that the reader knows.
async fn read_folder(
    client: &Client,
    folder: &str,
    election: Option<&ElectionName>,
    after: u64,
    oldest: u64,
) -> Result<Vec<EventRecord>, StoreError> {
    let failed = |error: Error| classify(&error, Over::Store);
    let mut names = match client.list_children(folder).await {
        Ok(names) => names,
        Err(Error::NoNode) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    names.sort_unstable_by(|one, other| other.cmp(one));
    let mut events = Vec::new();
    for names in names.chunks(MOST) {
        let mut reader = client.new_multi_reader();
        for name in names {
            reader.add_get_data(&format!("{folder}/{name}")).map_err(failed)?;
        }
        for (name, read) in names.iter().zip(reader.commit().await.map_err(failed)?) {
            // It may have been forgotten meanwhile.
            let MultiReadResult::Data { data, stat } = read else { continue };
            let document: EventDocument = documents::read(name, &data)?;
            let event = document.record(name, stat.czxid, election)?;
            if event.id <= after || document.sequence < oldest {
                return Ok(events);
            }
            events.push(event);
        }
    }
    Ok(events)
}

impl Inner {
    /// Makes word of a node part of a transaction. Such events are not counted: they are in the order in
    /// which the servers number them.
    pub(crate) fn tell_of_node(&self, multi: &mut Multi<'_>, kind: EventKind, node: &str, data: Value) {
        let event = EventDocument::new(kind, Some(node), 0, data);
        let options = self.link.options(CreateMode::PersistentSequential);
        multi.create(&format!("{}/", self.paths().log()), &documents::write(&event), &options);
    }

    /// Keeps only the newest events of nodes.
    pub(crate) async fn trim_log(&self, client: &Client) -> Result<(), StoreError> {
        let log = self.paths().log();
        let mut names = client.list_children(&log).await.map_err(|error| classify(&error, Over::Store))?;
        names.sort_unstable();
        let kept = usize::try_from(kept(self.options.retention)).unwrap_or(usize::MAX);
        for name in names.iter().take(names.len().saturating_sub(kept)) {
            drop(client.delete(&format!("{log}/{name}"), None)); // sent all the same
        }
        Ok(())
    }

    /// All elections that were ever stood for, as this connection's server knows it.
    pub(crate) async fn elections(&self, client: &Client) -> Result<Vec<ElectionName>, StoreError> {
        let folder = self.paths().elections();
        let failed = |error: Error| classify(&error, Over::Store);
        let listed = client.list_children(&folder).await.map_err(failed)?;
        let mut elections: Vec<_> = listed.iter().filter_map(|name| election_of(name)).collect();
        elections.sort_unstable();
        Ok(elections)
    }
}
