//! The store inside one process, for tests.
//!
//! Every verb is one transaction on a [`Replica`](tenure_replica::Replica) under one lock, so it happens
//! whole or not at all, and no lock is held while anything is awaited. The rules themselves, which are the
//! readable reference of the contract, are in `tenure-replica`. Nothing outlives the process.

mod connect;
mod world;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Capabilities, ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing,
};
use tenure_replica::Transaction;
use tenure_store::{
    Arranged, Arrangement, Candidate, Cause, Claim, Declaration, Deletion, Enlistment, EventQuery,
    EventRecord, ExpiryJudge, Finding, HealthReport, Hints, Leaf, Ledger, LedgerQuery, News, NodeRecord,
    Open, Options, Pending, Petitioned, Publication, Published, Release, Reply, Resign, Sessions, Store,
    StoreError, Survey,
};

use crate::world::World;

/// A connection to a store inside this process. Cloning it is cheap, and a clone is a connection
/// to the same store.
#[derive(Clone)]
pub struct MemoryStore {
    world: Arc<World>,
    options: Options,
}

impl MemoryStore {
    /// A fresh store that nobody else knows.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { world: Arc::new(World::new()), options }
    }

    /// Another connection to the same store: in another namespace, say.
    #[must_use]
    pub fn with(&self, options: Options) -> Self {
        Self { world: Arc::clone(&self.world), options }
    }

    /// The verb is applied when the future is first polled, and completes in that poll: a
    /// dropped future has either done all of it or nothing.
    fn transact<'a, T: 'a>(
        &'a self,
        verb: impl FnOnce(&mut Transaction<'_>) -> Result<T, StoreError> + Send + 'a,
    ) -> Pending<'a, Reply<T>> {
        Box::pin(async move { self.world.transact(&self.options, verb) })
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore")
            .field("identity", &self.world.identity())
            .field("options", &self.options)
            .finish()
    }
}

impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { expiry: ExpiryJudge::Candidate, news: News::Push, sessions: Sessions::Anywhere }
    }

    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        self.transact(move |transaction| transaction.open(request))
    }

    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        _attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>> {
        self.transact(move |transaction| transaction.renew(session, sequence))
    }

    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>> {
        self.transact(move |transaction| transaction.claim(&request))
    }

    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>> {
        self.transact(move |transaction| {
            transaction.resign(&request);
            Ok(())
        })
    }

    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>> {
        self.transact(move |transaction| {
            transaction.close(session, cause);
            Ok(())
        })
    }

    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        self.transact(move |transaction| Ok(transaction.record(&election)))
    }

    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        self.transact(move |transaction| Ok(transaction.delete(&election, force)))
    }

    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>> {
        self.transact(move |transaction| Ok(transaction.petition(&election, to.as_ref())))
    }

    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>> {
        self.transact(move |transaction| Ok(transaction.candidates(&election)))
    }

    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        self.transact(|transaction| Ok(transaction.elections()))
    }

    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        self.transact(|transaction| Ok(transaction.nodes()))
    }

    fn retire(&self, over: Stamp) -> Pending<'_, Reply<bool>> {
        self.transact(move |transaction| Ok(transaction.retire(over)))
    }

    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>> {
        self.transact(move |transaction| Ok(transaction.purge(older_than)))
    }

    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>> {
        self.transact(move |transaction| Ok(transaction.declare(&declaration)))
    }

    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>> {
        self.transact(move |transaction| transaction.report_health(report))
    }

    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>> {
        self.transact(move |transaction| Ok(transaction.events(&query)))
    }

    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>> {
        let place = Finding {
            name: "place",
            fine: true,
            value: String::from("inside this process"),
            advice: Some(String::from(
                "nobody else sees it, and nothing outlives the process: it is for tests",
            )),
        };
        self.transact(move |_| Ok(vec![place]))
    }

    fn news(&self) -> Hints {
        self.world.subscribe(&self.options.namespace)
    }

    fn ledger(&self) -> Option<&dyn Ledger> {
        Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Ledger for MemoryStore {
    fn survey(&self, election: ElectionName) -> Pending<'_, Reply<Survey>> {
        self.transact(move |transaction| Ok(transaction.survey(&election)))
    }

    fn leaf(&self, query: LedgerQuery) -> Pending<'_, Reply<Leaf>> {
        self.transact(move |transaction| Ok(transaction.leaf(&query)))
    }

    fn publish(&self, publication: Publication) -> Pending<'_, Reply<Published>> {
        self.transact(move |transaction| transaction.publish(&publication))
    }

    fn acknowledge(&self, release: Release) -> Pending<'_, Reply<u64>> {
        self.transact(move |transaction| transaction.acknowledge(&release))
    }

    fn enlist(&self, enlistment: Enlistment) -> Pending<'_, Reply<()>> {
        self.transact(move |transaction| transaction.enlist(enlistment))
    }

    fn arrange(&self, arrangement: Arrangement) -> Pending<'_, Reply<Arranged>> {
        self.transact(move |transaction| Ok(transaction.arrange(arrangement)))
    }
}
