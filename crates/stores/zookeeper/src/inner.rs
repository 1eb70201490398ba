//! What all verbs share: the way to the ensemble, the sessions that this store keeps, and whom to tell.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tenure_core::{ElectionName, Instant, NodeId, Renewal, SessionId, StoreIdentity};
use tenure_store::{Hint, Listeners, Open, Options, StoreError};
use tokio::sync::Notify;
use zookeeper_client::{Client, Error};

use crate::documents::{self, CandidateDocument, PulseDocument};
use crate::error::{Over, classify};
use crate::foreign::{Foreign, Highest};
use crate::link::{Connected, Link};
use crate::multi::Stopped;
use crate::paths::{Paths, Place};
use crate::seats::{Former, Past, Seat, Seats};
use crate::silence::Signs;

/// How often a verb reads again because the world has changed under it.
const TRIES: usize = 200;

pub(crate) struct Inner {
    pub link: Link,
    pub options: Options,
    /// Elections are those of another library.
    pub foreign: Option<Foreign>,
    /// The highest terms seen in such elections.
    pub highest: Mutex<HashMap<ElectionName, Highest>>,
    pub listeners: Listeners,
    /// There is another connection to hear the news on.
    pub moved: Arc<Notify>,
    /// Held while a session is opened.
    pub opening: tokio::sync::Mutex<()>,
    /// The sessions that live on connections of this store.
    pub tenants: Mutex<HashMap<SessionId, Arc<Tenant>>>,
    /// Those that did.
    pub former: Mutex<Former>,
    /// The holders whose departure an observer is told of.
    pub observed: Mutex<HashSet<String>>,
    /// Whose session is whose: that never changes, and a second hand-over to it need not ask.
    pub names: Mutex<HashMap<SessionId, String>>,
    /// What candidates have read of those before them.
    pub signs: Mutex<Signs>,
}

/// How long the store's own connection is kept that nobody uses.
const REST: Duration = Duration::from_secs(5);

/// How many names are remembered: more would be those of candidates that are gone.
const MOST_NAMES: usize = 1_000;

/// A poisoned lock is taken all the same: nothing here panics half-way through a change.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn paths(&self) -> &Paths {
        &self.link.paths
    }

    /// The session, if it lives on a connection of this store.
    pub(crate) fn tenant(&self, session: SessionId) -> Option<Arc<Tenant>> {
        lock(&self.tenants).get(&session).cloned()
    }

    /// The same for a verb that cannot do without.
    pub(crate) async fn expect_tenant(&self, session: SessionId) -> Result<Arc<Tenant>, StoreError> {
        if let Some(tenant) = self.tenant(session) {
            return Ok(tenant);
        }
        let connected = self.link.caught_up().await?;
        let there = connected.client.check_stat(&self.paths().session(session)).await;
        match there.map_err(|error| classify(&error, Over::Store))? {
            Some(_) => Err(StoreError::unavailable(
                "this session lives on another connection to ZooKeeper, which alone can keep it",
            )),
            None => Err(StoreError::SessionLost),
        }
    }

    /// The node that stands at a place in line; nothing if it has left.
    pub(crate) async fn node_in(
        &self,
        client: &Client,
        over: Over,
        election: &ElectionName,
        place: &Place,
    ) -> Result<Option<String>, StoreError> {
        if let Some(known) = lock(&self.names).get(&place.session) {
            return Ok(Some(known.clone()));
        }
        let path = format!("{}/{}", self.paths().line(election), place.name);
        let data = match client.get_data(&path).await {
            Ok((data, _)) => data,
            Err(Error::NoNode) => return Ok(None),
            Err(error) => return Err(classify(&error, over)),
        };
        let node = documents::read::<CandidateDocument>(&path, &data)?.node;
        let mut names = lock(&self.names);
        if names.len() >= MOST_NAMES {
            names.clear();
        }
        names.insert(place.session, node.clone());
        Ok(Some(node))
    }

    /// Where the candidates of an election are.
    pub(crate) fn line_of(&self, election: &ElectionName) -> String {
        self.foreign.as_ref().map_or_else(|| self.paths().line(election), |foreign| foreign.folder(election))
    }

    /// The connection that a node has anyway: that of a session, or else the store's own.
    pub(crate) async fn home(&self) -> Result<Connected, StoreError> {
        match self.of_session() {
            Some(connected) => Ok(connected),
            None => self.link.get().await,
        }
    }

    /// A connection of a session of this store.
    pub(crate) fn of_session(&self) -> Option<Connected> {
        let tenants = lock(&self.tenants);
        tenants.values().map(|tenant| tenant.line().connected).find(Connected::is_usable)
    }

    /// Keeps a session no longer: its connection ends, and nothing but time or [`end`](crate::sessions::end)
    /// does away with the rest.
    pub(crate) fn let_go(&self, session: SessionId) {
        if let Some(tenant) = lock(&self.tenants).remove(&session) {
            let elections = lock(&tenant.seats).iter().map(|(election, _)| election.clone()).collect();
            let (renewed, ttl) = (*lock(&tenant.renewed), tenant.granted);
            lock(&self.former).add(session, Past { elections, renewed, ttl });
        }
    }

    pub(crate) fn tell(&self, election: &ElectionName) {
        self.listeners.post(&Hint::Election(election.clone()));
    }

    /// If all sessions of this store that have to do with an election wait in its line: how many stand before the first of
    /// them. Those are told by whoever stands before them.
    pub(crate) fn standing_in(&self, election: &ElectionName) -> Option<usize> {
        let tenants = lock(&self.tenants);
        let queued: Vec<_> =
            tenants.values().filter_map(|tenant| lock(&tenant.seats).queued(election)).collect();
        queued.into_iter().collect::<Option<Vec<_>>>()?.into_iter().min()
    }
}

/// Closes the store's own connection whenever a session has one and nobody uses the other.
pub(crate) async fn rest(inner: Weak<Inner>) {
    loop {
        tokio::time::sleep(REST).await;
        let Some(inner) = inner.upgrade() else { return };
        if inner.of_session().is_some() {
            inner.link.rest(REST).await;
        }
    }
}

/// Repeats an attempt for as long as the world changes under it.
pub(crate) async fn settle<T, F>(mut attempt: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, Stopped>>,
{
    for _ in 0..TRIES {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(Stopped::Stale) => {}
            Err(Stopped::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::unavailable("what is on ZooKeeper changes faster than it can be read; try again"))
}

/// A session of Tenure, which is one session of ZooKeeper.
pub(crate) struct Tenant {
    pub session: SessionId,
    pub node: NodeId,
    line: Mutex<Line>,
    /// Held while a fresh connection is looked for.
    attaching: tokio::sync::Mutex<()>,
    /// The life that was asked for.
    asked: Duration,
    /// The life that the servers granted.
    pub granted: Duration,
    /// What a node may count on of it.
    pub lease: Duration,
    /// The highest that was sent. Requests arrive in the order in which they are sent, so it never falls.
    sequence: Mutex<u64>,
    /// Nothing while it is not known: while a renewal is under way, or if its answer was lost.
    mark: Mutex<Option<Mark>>,
    pub seats: Mutex<Seats>,
    /// The znodes that wake us when they go.
    pub watched: Mutex<HashSet<String>>,
    /// When the last renewal was asked for that was answered.
    pub renewed: Mutex<Instant>,
    /// When it was asked for.
    pub opened: Instant,
}

/// A connection of a session.
#[derive(Clone)]
pub(crate) struct Line {
    pub connected: Connected,
    /// Counts the connections that the session has had.
    pub number: i32,
}

impl Line {
    pub(crate) fn client(&self) -> &Client {
        &self.connected.client
    }
}

impl Tenant {
    /// A session that was opened like this, at that instant, and may count on so much.
    pub(crate) fn new(open: &Open, at: Instant, connected: Connected, lease: Duration) -> Self {
        Self {
            session: open.session,
            node: open.node.id.clone(),
            granted: connected.client.session_timeout(),
            line: Mutex::new(Line { connected, number: 0 }),
            attaching: tokio::sync::Mutex::default(),
            asked: open.ttl,
            lease,
            sequence: Mutex::new(open.sequence),
            mark: Mutex::new(Some(Mark { sequence: open.sequence, ..Mark::default() })),
            seats: Mutex::default(),
            watched: Mutex::default(),
            renewed: Mutex::new(at),
            opened: at,
        }
    }

    /// The newest connection. A verb takes it once per attempt.
    pub(crate) fn line(&self) -> Line {
        lock(&self.line).clone()
    }

    pub(crate) fn client(&self) -> Client {
        self.line().connected.client
    }

    pub(crate) fn identity(&self) -> StoreIdentity {
        self.line().connected.identity
    }

    /// Has the session served over a fresh connection. It is looked for to the end, also when nobody waits
    /// for it any more: the next attempt finds it.
    pub(crate) async fn refresh(self: &Arc<Self>, inner: &Arc<Inner>) -> Result<(), StoreError> {
        let (tenant, inner) = (Arc::clone(self), Arc::clone(inner));
        let refreshed = tokio::spawn(async move {
            let Ok(_turn) = tenant.attaching.try_lock() else {
                let _others = tenant.attaching.lock().await;
                return Ok(());
            };
            let connected = inner.link.reopen(&tenant.line().connected, tenant.asked).await?;
            let (path, data) = (inner.paths().session(tenant.session), tenant.node.as_str());
            let counted = connected.client.set_data(&path, data.as_bytes(), None).await;
            let number = match counted {
                Ok(stat) => stat.version,
                Err(Error::NoNode) => return Err(StoreError::SessionLost),
                Err(error) => return Err(classify(&error, Over::Session)),
            };
            *lock(&tenant.line) = Line { connected, number };
            inner.moved.notify_one();
            Ok(())
        });
        refreshed.await.unwrap_or_else(|_| Err(StoreError::indeterminate("the store's thread ended")))
    }

    pub(crate) fn seat<T>(&self, election: &ElectionName, change: impl FnOnce(&mut Seat) -> T) -> T {
        change(lock(&self.seats).of(election))
    }

    /// What a renewal writes: the highest sequence of all that were asked for so far.
    pub(crate) fn pulse(&self, sequence: u64) -> PulseDocument {
        let mut highest = lock(&self.sequence);
        *highest = sequence.max(*highest);
        PulseDocument::new(*highest, self.granted)
    }

    pub(crate) fn take_mark(&self) -> Option<Mark> {
        lock(&self.mark).take()
    }

    pub(crate) fn leave_mark(&self, mark: Mark) {
        *lock(&self.mark) = Some(mark);
    }
}

/// What the last renewal has left: the versions of the session's znodes, and the sequence in its pulse. All of them are
/// new with the session. The next renewal is one request if they are still the same.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    pub pulse: i32,
    pub sequence: u64,
    pub notices: i32,
    pub grants: i32,
}

impl Mark {
    /// What a renewal tells, after one with that sequence. Nothing of elections: whoever waits watches the place before
    /// its own, and to read their records would be another request.
    pub(crate) fn renewal(self, previous: u64) -> Renewal<ElectionName> {
        let count = |version| u64::try_from(version).unwrap_or(0);
        let (notices, grants) = (count(self.notices), count(self.grants));
        Renewal { previous, notices, grants, waits_for: Vec::new() }
    }
}
