//! The store inside one process, for tests, and the readable reference of the contract.
//!
//! Every verb is one transaction under one lock, so it happens
//! whole or not at all, and no lock is held while anything is awaited. The rules themselves are in
//! `sessions.rs` (open, renew, close), `claims.rs` (claim), `resignation.rs`, `petition.rs` and `deletion.rs`;
//! they are written to be read beside [`tenure_store::Store`]. Nothing outlives the process.

mod claims;
mod connect;
mod deletion;
mod history;
mod petition;
mod reading;
mod resignation;
mod sessions;
mod space;
mod transaction;
mod world;

use std::any::Any;
use std::sync::Arc;

use tenure_core::{
    Capabilities, ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Standing,
};
use tenure_store::{
    Candidate, Claim, Deletion, EventQuery, EventRecord, ExpiryJudge, Finding, Hints, News, NodeRecord, Open,
    Options, Pending, Petitioned, Reply, Resign, Store, StoreError, Succession,
};

use crate::transaction::Transaction;
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
        Capabilities { succession: Succession::Race, expiry: ExpiryJudge::Candidate, news: News::Push }
    }

    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        self.transact(move |transaction| transaction.open(request))
    }

    fn renew(&self, session: SessionId, sequence: Sequence, _attempt: u32) -> Pending<'_, Reply<Renewal>> {
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

    fn close(&self, session: SessionId) -> Pending<'_, Reply<()>> {
        self.transact(move |transaction| {
            transaction.close(session);
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

    fn as_any(&self) -> &dyn Any {
        self
    }
}
