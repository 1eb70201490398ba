//! The contract, verb by verb.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing};
use tenure_store::{
    Arranged, Arrangement, Candidate, Capabilities, Cause, Claim, Declaration, Deletion, Enlistment,
    EventQuery, EventRecord, ExpiryJudge, Finding, HealthReport, Hints, Leaf, Ledger, LedgerQuery, Listeners,
    News, NodeRecord, Open, Pending, Petitioned, Publication, Published, Release, Reply, Resign, Sessions,
    Store, StoreError, StoreUrl, Survey, Told,
};
use tokio::sync::Notify;
use zookeeper_client::Client;

use crate::address::Address;
use crate::engine::Engine;
use crate::inner::Inner;
use crate::link::Link;
use crate::paths::Paths;
use crate::resignation::Ending;
use crate::{
    claims, examination, foreign, health, history, inner, ledger, news, outside, registry, resignation,
    sessions,
};

/// Sessions and leases on a ZooKeeper ensemble.
///
/// One connection for every session that is opened, and one for what is read, which is closed when nobody has used it
/// for a while and a session is open. Dropping the store ends them all, and frees nothing: a session lives until it is closed, or for its time-out. A future that is dropped
/// leaves its request in an unknown state, and the store usable.
pub struct ZooKeeperStore {
    engine: Engine,
    inner: Arc<Inner>,
}

impl ZooKeeperStore {
    /// Connects to `zk://h1:2181,h2:2181/base`, and makes Tenure's znodes below that path if there are none.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] if the URL or the ensemble cannot be used, with what to do;
    /// [`StoreError::Unavailable`] if it cannot be reached.
    pub async fn connect(url: &StoreUrl) -> Result<Self, StoreError> {
        let address = Address::of(url).map_err(StoreError::misconfigured)?;
        Self::at(url, address, None).await
    }

    /// The same over a client that the application has connected, and goes on using. Its session of ZooKeeper
    /// carries the leases, so one connection serves for everything. The URL says the rest: `zk:///base?…`,
    /// without servers, user and encryption.
    ///
    /// The client is the application's: when its session is over, so is whatever a node held, and the node finds
    /// no other; start one with a new client then. Its runtime must not be blocked, or nothing is renewed. The
    /// ttl of a node must not be longer than the client's time-out, and is as long as that.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn with_client(client: Client, url: &StoreUrl) -> Result<Self, StoreError> {
        let address = Address::of_client(url).map_err(StoreError::misconfigured)?;
        Self::at(url, address, Some(client)).await
    }

    async fn at(url: &StoreUrl, address: Address, given: Option<Client>) -> Result<Self, StoreError> {
        let engine = Engine::start("tenure-zookeeper")?;
        let paths = Paths::new(&address.base, &url.options.namespace);
        let foreign = address.foreign.clone();
        let inner = Arc::new(Inner {
            foreign,
            highest: Default::default(),
            link: Link::new(address, paths, given, url.options.setup),
            options: url.options.clone(),
            listeners: Listeners::default(),
            moved: Arc::new(Notify::new()),
            opening: tokio::sync::Mutex::default(),
            tenants: Default::default(),
            former: Default::default(),
            observed: Default::default(),
            names: Default::default(),
            signs: Default::default(),
        });
        let connecting = Arc::clone(&inner);
        engine.run(async move { connecting.link.get().await.map(|_| ()) }).await?;
        engine.spawn(news::listen(Arc::downgrade(&inner)));
        engine.spawn(inner::rest(Arc::downgrade(&inner)));
        Ok(Self { engine, inner })
    }

    /// Runs a verb over the store's own connection, and tells which ensemble answered. What it reads is no older than
    /// the question.
    fn ask<T, F>(&self, verb: impl FnOnce(Arc<Inner>, Client) -> F + Send + 'static) -> Pending<'_, Reply<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.engine.run(async move {
            let connected = inner.link.caught_up().await?;
            let value = verb(inner, connected.client.clone()).await?;
            Ok(Told { store: connected.identity, value })
        }))
    }

    /// The same for a verb about a session: its own connection is the one that answered.
    fn ask_under<T, F>(
        &self,
        session: SessionId,
        verb: impl FnOnce(Arc<Inner>) -> F + Send + 'static,
    ) -> Pending<'_, Reply<T>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.engine.run(async move {
            let tenant = inner.tenant(session);
            let value = verb(Arc::clone(&inner)).await?;
            let store = match tenant {
                Some(tenant) => tenant.identity(),
                None => inner.link.get().await?.identity,
            };
            Ok(Told { store, value })
        }))
    }
}

impl Store for ZooKeeperStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            expiry: ExpiryJudge::Store,
            // Nobody tells of an election of others that nobody stands for.
            news: if self.inner.foreign.is_some() { News::Poll } else { News::Push },
            sessions: Sessions::OwnConnection,
        }
    }

    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        let inner = Arc::clone(&self.inner);
        // To its end: a session that nobody waits for any more must be found by the next request for it.
        Box::pin(self.engine.finish(async move {
            let value = sessions::open(&inner, &request).await?;
            let store = match inner.tenant(request.session) {
                Some(tenant) => tenant.identity(),
                None => inner.link.get().await?.identity,
            };
            Ok(Told { store, value })
        }))
    }

    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>> {
        self.ask_under(session, move |inner| async move {
            sessions::renew(&inner, session, sequence, attempt).await
        })
    }

    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>> {
        self.ask_under(request.session, |inner| async move {
            let Some(shared) = &inner.foreign else { return claims::claim(&inner, &request).await };
            foreign::checked(shared, &request.election)?;
            foreign::claim(&inner, shared, &request).await
        })
    }

    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>> {
        self.ask_under(request.session, |inner| async move {
            match &inner.foreign {
                Some(shared) => foreign::resign(&inner, shared, &request).await,
                None => resignation::resign(&inner, &request).await,
            }
        })
    }

    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(self.engine.run(async move {
            inner.let_go(session);
            let connected = inner.link.caught_up().await?;
            sessions::end(&inner, &connected.client, session, Ending::Closed(cause)).await?;
            Ok(Told { store: connected.identity, value: () })
        }))
    }

    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        self.ask(move |inner, client| async move {
            let (record, holder) = match &inner.foreign {
                Some(shared) => {
                    foreign::checked(shared, &election)?;
                    foreign::read(&inner, shared, &client, &election).await?
                }
                None => {
                    let (view, record) = registry::read(&inner, &client, &election).await?;
                    let path = |name: &str| format!("{}/{name}", inner.paths().line(&election));
                    (record, view.holder().map(|holder| path(&holder.name)))
                }
            };
            if let Some(path) = holder {
                news::observe(&inner, &election, path).await?;
            }
            Ok(record)
        })
    }

    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        self.ask(move |inner, client| async move {
            match &inner.foreign {
                Some(shared) => Err(foreign::no_room(shared, "an end that its candidates are told of")),
                None => outside::delete(&inner, &client, &election, force).await,
            }
        })
    }

    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>> {
        self.ask(move |inner, client| async move {
            match &inner.foreign {
                Some(shared) => Err(foreign::no_room(shared, "a word to the leader")),
                None => outside::petition(&inner, &client, &election, to.as_ref()).await,
            }
        })
    }

    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>> {
        self.ask(move |inner, client| async move {
            match &inner.foreign {
                Some(shared) => foreign::candidates(shared, &client, &election).await,
                None => registry::candidates(&inner, &client, &election).await,
            }
        })
    }

    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        self.ask(|inner, client| async move {
            let Some(shared) = &inner.foreign else { return registry::elections(&inner, &client).await };
            let mut records = Vec::new();
            for election in foreign::elections(shared, &client).await? {
                let (record, _) = foreign::read(&inner, shared, &client, &election).await?;
                records.push((election, record));
            }
            Ok(records)
        })
    }

    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        self.ask(|inner, client| async move { registry::nodes(&inner, &client).await })
    }

    fn retire(&self, _over: Stamp) -> Pending<'_, Reply<bool>> {
        // The servers judge.
        self.ask(|_, _| async { Ok(false) })
    }

    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>> {
        self.ask(move |inner, client| async move { registry::purge(&inner, &client, older_than).await })
    }

    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>> {
        self.ask(move |inner, client| async move {
            match &inner.foreign {
                Some(_) => Ok(false),
                None => outside::declare(&inner, &client, &declaration).await,
            }
        })
    }

    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>> {
        self.ask_under(report.session, move |inner| async move { health::report(&inner, &report).await })
    }

    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>> {
        self.ask(move |inner, client| async move { history::read(&inner, &client, query).await })
    }

    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>> {
        self.ask(|inner, client| async move { examination::examine(&inner, &client).await })
    }

    fn news(&self) -> Hints {
        self.inner.listeners.subscribe()
    }

    fn ledger(&self) -> Option<&dyn Ledger> {
        // The layouts of other libraries have no room for one.
        self.inner.foreign.is_none().then_some(self as &dyn Ledger)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Ledger for ZooKeeperStore {
    fn survey(&self, election: ElectionName) -> Pending<'_, Reply<Survey>> {
        self.ask(move |inner, client| async move { ledger::survey(&inner, &client, &election).await })
    }

    fn leaf(&self, query: LedgerQuery) -> Pending<'_, Reply<Leaf>> {
        self.ask(move |inner, client| async move { ledger::leaf(&inner, &client, &query).await })
    }

    fn publish(&self, publication: Publication) -> Pending<'_, Reply<Published>> {
        self.ask_under(publication.lease.session, move |inner| async move {
            ledger::publish(&inner, &publication).await
        })
    }

    fn acknowledge(&self, release: Release) -> Pending<'_, Reply<u64>> {
        self.ask_under(
            release.session,
            move |inner| async move { ledger::acknowledge(&inner, &release).await },
        )
    }

    fn enlist(&self, enlistment: Enlistment) -> Pending<'_, Reply<()>> {
        self.ask_under(
            enlistment.session,
            move |inner| async move { ledger::enlist(&inner, &enlistment).await },
        )
    }

    fn arrange(&self, arrangement: Arrangement) -> Pending<'_, Reply<Arranged>> {
        self.ask(move |inner, client| async move { ledger::arrange(&inner, &client, &arrangement).await })
    }
}
