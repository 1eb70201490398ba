//! A store that can be cut off, for `tenure demo`: the demo's nodes meet in a file, and no cable leads to it.
//!
//! While the file that TENURE_DEMO_CUT names exists, every question to the store fails, as if the network
//! were gone. What the node does about it is what it always does.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenure::{ElectionName, EventQuery, EventRecord, NodeId, NodeRecord, SessionId, Store, StoreError};
use tenure_core::{Capabilities, Opening, Record, Renewal, Sequence, Stamp, Standing};
use tenure_store::{
    Arranged, Arrangement, Candidate, Cause, Claim, Declaration, Deletion, Enlistment, Finding, HealthReport,
    Hints, Leaf, Ledger, LedgerQuery, Open, Pending, Petitioned, Publication, Published, Release, Reply,
    Resign, Survey,
};

/// Names the file whose existence cuts a node off.
pub const CUT: &str = "TENURE_DEMO_CUT";

struct Severed {
    store: Arc<dyn Store>,
    cut: PathBuf,
}

/// The store, to be cut off if this is a node of a demo.
pub fn severable(store: Arc<dyn Store>) -> Arc<dyn Store> {
    match std::env::var_os(CUT) {
        Some(cut) => Arc::new(Severed { store, cut: cut.into() }),
        None => store,
    }
}

impl Severed {
    fn pass<'a, T: Send + 'a>(
        &self,
        question: impl FnOnce() -> Pending<'a, Reply<T>>,
    ) -> Pending<'a, Reply<T>> {
        if self.cut.exists() {
            return Box::pin(async { Err(StoreError::unavailable("the demo has cut this node off")) });
        }
        question()
    }
}

impl Store for Severed {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }
    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        self.pass(|| self.store.open(request))
    }
    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>> {
        self.pass(|| self.store.renew(session, sequence, attempt))
    }
    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>> {
        self.pass(|| self.store.claim(request))
    }
    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>> {
        self.pass(|| self.store.resign(request))
    }
    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>> {
        self.pass(|| self.store.close(session, cause))
    }
    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        self.pass(|| self.store.read(election))
    }
    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        self.pass(|| self.store.delete(election, force))
    }
    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>> {
        self.pass(|| self.store.petition(election, to))
    }
    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>> {
        self.pass(|| self.store.candidates(election))
    }
    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        self.pass(|| self.store.elections())
    }
    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        self.pass(|| self.store.nodes())
    }
    fn retire(&self, over: Stamp) -> Pending<'_, Reply<bool>> {
        self.pass(|| self.store.retire(over))
    }
    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>> {
        self.pass(|| self.store.purge(older_than))
    }
    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>> {
        self.pass(|| self.store.declare(declaration))
    }
    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>> {
        self.pass(|| self.store.report_health(report))
    }
    fn events(&self, query: EventQuery) -> Pending<'_, Reply<Vec<EventRecord>>> {
        self.pass(|| self.store.events(query))
    }
    fn examine(&self) -> Pending<'_, Reply<Vec<Finding>>> {
        self.pass(|| self.store.examine())
    }
    fn news(&self) -> Hints {
        self.store.news()
    }
    fn ledger(&self) -> Option<&dyn Ledger> {
        self.store.ledger().is_some().then_some(self as &dyn Ledger)
    }
    fn as_any(&self) -> &dyn Any {
        self.store.as_any()
    }
}

impl Severed {
    fn pass_to_ledger<'a, T: Send + 'a>(
        &'a self,
        question: impl FnOnce(&'a dyn Ledger) -> Pending<'a, Reply<T>>,
    ) -> Pending<'a, Reply<T>> {
        match self.store.ledger() {
            Some(ledger) => self.pass(|| question(ledger)),
            None => Box::pin(async { Err(StoreError::misconfigured("the store keeps no ledger")) }),
        }
    }
}

impl Ledger for Severed {
    fn survey(&self, election: ElectionName) -> Pending<'_, Reply<Survey>> {
        self.pass_to_ledger(|ledger| ledger.survey(election))
    }
    fn leaf(&self, query: LedgerQuery) -> Pending<'_, Reply<Leaf>> {
        self.pass_to_ledger(|ledger| ledger.leaf(query))
    }
    fn publish(&self, publication: Publication) -> Pending<'_, Reply<Published>> {
        self.pass_to_ledger(|ledger| ledger.publish(publication))
    }
    fn acknowledge(&self, release: Release) -> Pending<'_, Reply<u64>> {
        self.pass_to_ledger(|ledger| ledger.acknowledge(release))
    }
    fn enlist(&self, enlistment: Enlistment) -> Pending<'_, Reply<()>> {
        self.pass_to_ledger(|ledger| ledger.enlist(enlistment))
    }
    fn arrange(&self, arrangement: Arrangement) -> Pending<'_, Reply<Arranged>> {
        self.pass_to_ledger(|ledger| ledger.arrange(arrangement))
    }
}
