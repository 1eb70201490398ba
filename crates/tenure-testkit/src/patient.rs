//! A store that is asked again while it cannot be reached: on a busy machine a server may not answer a connection in the
//! time that a node gives it, and that is not what a test of its promises looks for.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Capabilities, ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing,
};
use tenure_store::{
    Arranged, Arrangement, Candidate, Cause, Claim, Declaration, Deletion, Enlistment, EventQuery,
    EventRecord, Finding, HealthReport, Hints, Leaf, Ledger, LedgerQuery, NodeRecord, Open, Pending,
    Petitioned, Publication, Published, Release, Reply, Resign, Store, StoreError, Survey, clock,
};

use crate::patience::HANG;

/// How soon it is asked again.
const AGAIN: Duration = Duration::from_millis(50);

struct Patient(Arc<dyn Store>);

/// The store, asked again whenever it did not take a request, for as long as no test waits for anything.
#[must_use]
pub fn patient(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Patient(store))
}

/// Asks until the store takes the request.
///
/// # Errors
/// Any other error than [`StoreError::Unavailable`]; and that, after far longer than anything takes.
pub async fn until_available<T>(
    mut ask: impl AsyncFnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let end = clock::now() + HANG;
    loop {
        match ask().await {
            Err(StoreError::Unavailable(_)) if clock::now() < end => tokio::time::sleep(AGAIN).await,
            answered => return answered,
        }
    }
}

/// Verbs of the `$inner` store or ledger.
macro_rules! verbs {
    ($self:ident => $inner:expr; $($verb:ident($($name:ident: $type:ty),*) -> $answer:ty;)+) => {$(
        fn $verb(&$self, $($name: $type),*) -> Pending<'_, Reply<$answer>> {
            Box::pin(async move {
                let end = clock::now() + HANG;
                loop {
                    match $inner.$verb($($name.clone()),*).await {
                        Err(StoreError::Unavailable(_)) if clock::now() < end => tokio::time::sleep(AGAIN).await,
                        answered => return answered,
                    }
                }
            })
        }
    )+};
}

impl Store for Patient {
    verbs! { self => self.0;
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
        self.0.capabilities()
    }

    fn news(&self) -> Hints {
        self.0.news()
    }

    fn ledger(&self) -> Option<&dyn Ledger> {
        self.0.ledger().map(|_| self as &dyn Ledger)
    }

    fn as_any(&self) -> &dyn Any {
        self.0.as_any()
    }
}

impl Ledger for Patient {
    verbs! { self => self.0.ledger().expect("it is a ledger only where the store has one");
        survey(election: ElectionName) -> Survey;
        leaf(query: LedgerQuery) -> Leaf;
        publish(publication: Publication) -> Published;
        acknowledge(release: Release) -> u64;
        enlist(enlistment: Enlistment) -> ();
        arrange(arrangement: Arrangement) -> Arranged;
    }
}
