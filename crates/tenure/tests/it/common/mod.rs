//! What the tests share: a store that can be told to misbehave, and waits that cannot hang.
#![allow(clippy::unwrap_used, reason = "a test that unwraps has failed")]
#![allow(dead_code, reason = "every test file uses its own part of it")]

pub mod children;

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::{
    ElectionName, EventQuery, EventRecord, Node, NodeBuilder, NodeRecord, SessionId, Store, StoreError,
};
use tenure_core::{Capabilities, NodeId, Opening, Record, Renewal, Sequence, Stamp, Standing};
use tenure_store::{
    Arranged, Arrangement, Candidate, Cause, Claim, Declaration, Deletion, Enlistment, Finding, HealthReport,
    Hints, Leaf, Ledger, LedgerQuery, Open, Options, Pending, Petitioned, Publication, Published, Release,
    Reply, Resign, Survey,
};

pub use tenure_testkit::patience::HANG;

/// Waits, but not forever.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(HANG, future).await.expect("this takes too long: something hangs")
}

/// Waits until `condition` holds.
pub async fn until(condition: impl Fn() -> bool) {
    soon(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

/// The same without a runtime.
pub fn until_blocking(condition: impl Fn() -> bool) {
    let end = tenure_store::clock::now() + HANG;
    while !condition() {
        assert!(tenure_store::clock::now() < end, "this takes too long: something hangs");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn memory() -> Arc<dyn Store> {
    Arc::new(tenure_memory::MemoryStore::new(Options::default()))
}

pub async fn sqlite(directory: &tempfile::TempDir) -> Arc<dyn Store> {
    let path = directory.path().join("tenure.db");
    tenure::connect(format!("sqlite:{}", path.display())).await.unwrap()
}

/// A node for tests in which nothing is to lapse.
pub fn calm(id: &str) -> NodeBuilder {
    Node::builder(id).ttl(Duration::from_secs(3600))
}

/// A node for tests in which nothing is to lapse, and renewals are waited for.
pub fn diligent(id: &str) -> NodeBuilder {
    calm(id).renew_every(Duration::from_millis(50))
}

/// A node for tests in which something is to lapse, and may do so at any time.
pub fn brief(id: &str) -> NodeBuilder {
    Node::builder(id).ttl(Duration::from_millis(900))
}

/// A node for tests in which something is to lapse, but not before the store no longer answers: a busy machine may let
/// it stand still for seconds.
pub fn steady(id: &str) -> NodeBuilder {
    Node::builder(id).ttl(STEADY).renew_every(Duration::from_millis(50))
}

/// How long the session of a [`steady`] node lives without renewal.
pub const STEADY: Duration = Duration::from_secs(5);

pub async fn start(builder: NodeBuilder, store: &Arc<dyn Store>) -> Node {
    soon(builder.start(Arc::clone(store))).await.unwrap()
}

/// What a verb does instead of its duty.
#[derive(Clone, Debug, Default)]
pub enum Manner {
    /// Its duty.
    #[default]
    Dutiful,
    /// Nothing, and says so.
    Refuses,
    /// Cannot be used.
    Misconfigured,
    /// Never answers.
    Hangs,
    /// Does its duty, but answers as if it had not been heard.
    LosesReplies,
    /// Blocks the thread that asks, until released.
    Blocks(Arc<AtomicBool>),
    /// Panics.
    Panics,
}

/// A store that counts what it is asked, and misbehaves as told.
pub struct Wrapped {
    inner: Arc<dyn Store>,
    manners: Mutex<HashMap<&'static str, Manner>>,
    counts: Mutex<HashMap<&'static str, u64>>,
}

impl Wrapped {
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, manners: Mutex::default(), counts: Mutex::default() })
    }

    pub fn store(self: &Arc<Self>) -> Arc<dyn Store> {
        Arc::clone(self) as Arc<dyn Store>
    }

    pub fn set(&self, verb: &'static str, manner: Manner) {
        self.manners.lock().unwrap().insert(verb, manner);
    }

    pub fn set_all(&self, manner: &Manner) {
        for verb in [
            "open",
            "renew",
            "claim",
            "resign",
            "close",
            "read",
            "candidates",
            "delete",
            "survey",
            "leaf",
            "publish",
            "acknowledge",
            "enlist",
            "report_health",
        ] {
            self.set(verb, manner.clone());
        }
    }

    pub fn count(&self, verb: &'static str) -> u64 {
        self.counts.lock().unwrap().get(verb).copied().unwrap_or(0)
    }

    fn pass<'a, T: Send + 'a>(
        &self,
        verb: &'static str,
        duty: impl FnOnce() -> Pending<'a, Reply<T>> + Send + 'a,
    ) -> Pending<'a, Reply<T>> {
        *self.counts.lock().unwrap().entry(verb).or_default() += 1;
        let manner = self.manners.lock().unwrap().get(verb).cloned().unwrap_or_default();
        match manner {
            Manner::Dutiful => duty(),
            Manner::Refuses => Box::pin(async { Err(StoreError::unavailable("told to refuse")) }),
            Manner::Misconfigured => {
                Box::pin(async { Err(StoreError::misconfigured("the table is missing; run `make it`")) })
            }
            Manner::Hangs => Box::pin(std::future::pending()),
            Manner::LosesReplies => Box::pin(async {
                let _ = duty().await;
                Err(StoreError::indeterminate("told to lose the reply"))
            }),
            Manner::Blocks(released) => {
                until_blocking(|| released.load(Ordering::Acquire));
                duty()
            }
            Manner::Panics => panic!("told to panic in {verb}"),
        }
    }
}

impl Store for Wrapped {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        self.pass("open", || self.inner.open(request))
    }
    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>> {
        self.pass("renew", move || self.inner.renew(session, sequence, attempt))
    }
    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>> {
        self.pass("claim", || self.inner.claim(request))
    }
    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>> {
        self.pass("resign", || self.inner.resign(request))
    }
    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>> {
        self.pass("close", move || self.inner.close(session, cause))
    }
    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        self.pass("read", || self.inner.read(election))
    }
    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        self.pass("delete", move || self.inner.delete(election, force))
    }
    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>> {
        self.pass("petition", move || self.inner.petition(election, to))
    }
    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>> {
        self.pass("candidates", || self.inner.candidates(election))
    }
    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        self.inner.elections()
    }
    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        self.inner.nodes()
    }
    fn retire(&self, over: Stamp) -> Pending<'_, Reply<bool>> {
        self.pass("retire", move || self.inner.retire(over))
    }
    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>> {
        self.inner.purge(older_than)
    }
    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>> {
        self.inner.declare(declaration)
    }
    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>> {
        self.pass("report_health", || self.inner.report_health(report))
    }
    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>> {
        self.inner.events(query)
    }
    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>> {
        self.inner.examine()
    }
    fn news(&self) -> Hints {
        self.inner.news()
    }
    fn ledger(&self) -> Option<&dyn Ledger> {
        self.inner.ledger().map(|_| self as &dyn Ledger)
    }
    fn as_any(&self) -> &dyn Any {
        self.inner.as_any()
    }
}

impl Wrapped {
    fn kept(&self) -> &dyn Ledger {
        self.inner.ledger().unwrap()
    }
}

impl Ledger for Wrapped {
    fn survey(&self, election: ElectionName) -> Pending<'_, Reply<Survey>> {
        self.pass("survey", || self.kept().survey(election))
    }
    fn leaf(&self, query: LedgerQuery) -> Pending<'_, Reply<Leaf>> {
        self.pass("leaf", || self.kept().leaf(query))
    }
    fn publish(&self, publication: Publication) -> Pending<'_, Reply<Published>> {
        self.pass("publish", || self.kept().publish(publication))
    }
    fn acknowledge(&self, release: Release) -> Pending<'_, Reply<u64>> {
        self.pass("acknowledge", || self.kept().acknowledge(release))
    }
    fn enlist(&self, enlistment: Enlistment) -> Pending<'_, Reply<()>> {
        self.pass("enlist", || self.kept().enlist(enlistment))
    }
    fn arrange(&self, arrangement: Arrangement) -> Pending<'_, Reply<Arranged>> {
        self.kept().arrange(arrangement)
    }
}
