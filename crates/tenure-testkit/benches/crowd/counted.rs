//! A store that counts what its node asks of it.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    Capabilities, ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing,
};
use tenure_store::{
    Candidate, Cause, Claim, Declaration, Deletion, EventQuery, EventRecord, Finding, HealthReport, Hints,
    NodeRecord, Open, Pending, Petitioned, Reply, Resign, Store,
};

/// How often which verb was asked, by all whose stores share it.
#[derive(Clone, Default)]
pub struct Tally(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Tally {
    pub fn on(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Counted { store, tally: self.clone() })
    }

    pub fn read(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, verb: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(verb).or_default() += 1;
    }
}

/// Without a ledger: nobody here divides partitions.
struct Counted {
    store: Arc<dyn Store>,
    tally: Tally,
}

macro_rules! verbs {
    ($($verb:ident($($name:ident: $type:ty),*) -> $answer:ty;)+) => {$(
        fn $verb(&self, $($name: $type),*) -> Pending<'_, Reply<$answer>> {
            self.tally.count(stringify!($verb));
            self.store.$verb($($name),*)
        }
    )+};
}

impl Store for Counted {
    verbs! {
        open(request: Open) -> Opening;
        renew(session: SessionId, sequence: Sequence, attempt: u32) -> Renewal<ElectionName>;
        claim(request: Claim) -> Standing;
        resign(request: Resign) -> ();
        close(session: SessionId, cause: Cause) -> ();
        read(election: ElectionName) -> Record;
        delete(election: ElectionName, force: bool) -> Deletion;
        petition(election: ElectionName, to: Option<NodeId>) -> Petitioned;
        candidates(election: ElectionName) -> Vec<Candidate>;
        elections() -> Vec<(ElectionName, Record)>;
        nodes() -> Vec<NodeRecord>;
        retire(over: Stamp) -> bool;
        purge(older_than: Duration) -> u64;
        declare(declaration: Declaration) -> bool;
        report_health(report: HealthReport) -> bool;
        events(query: EventQuery) -> Vec<EventRecord>;
        examine() -> Vec<Finding>;
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn news(&self) -> Hints {
        self.store.news()
    }

    fn as_any(&self) -> &dyn Any {
        self.store.as_any()
    }
}
