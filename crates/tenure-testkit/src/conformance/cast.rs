//! Who plays in the checks: nodes that say one verb at a time, and the words to judge answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{
    ElectionName, Holder, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing, Term,
};
use tenure_store::{
    Cause, Claim, EventKind, EventQuery, EventRecord, NodeInfo, Open, Resign, Store, StoreError, clock,
};

/// Far longer than any check runs: no session of the suite lapses by itself.
pub(crate) const TTL: Duration = Duration::from_secs(300);

pub(crate) fn election(name: &str) -> ElectionName {
    ElectionName::new(name).expect("the suite uses good names")
}

/// An id that no process has used before, not even an earlier run against the same server.
pub(crate) fn fresh_session() -> SessionId {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let process = u128::from(std::process::id()) << 96;
    SessionId::from_u128(process | u128::from(clock::now().as_nanos()) << 32 | u128::from(count))
}

/// A node with a session, that keeps count of its signs of life and of its attempts.
pub(crate) struct Node {
    pub store: Arc<dyn Store>,
    pub session: SessionId,
    pub id: NodeId,
    sequence: AtomicU64,
    attempt: AtomicU64,
}

impl Node {
    /// A node that has not opened its session yet.
    pub(crate) fn new(store: &Arc<dyn Store>, id: &str) -> Self {
        Self {
            store: Arc::clone(store),
            session: fresh_session(),
            id: NodeId::new(id).expect("the suite uses good names"),
            sequence: AtomicU64::new(1),
            attempt: AtomicU64::new(0),
        }
    }

    /// A node with an open session.
    pub(crate) async fn open(store: &Arc<dyn Store>, id: &str) -> Self {
        let node = Self::new(store, id);
        node.expect_opened(node.opening()).await;
        node
    }

    pub(crate) fn opening(&self) -> Open {
        Open {
            session: self.session,
            sequence: self.sequence.load(Ordering::Relaxed),
            ttl: TTL,
            node: NodeInfo::new(self.id.clone(), "here"),
            supersedes: None,
            over: None,
        }
    }

    pub(crate) async fn expect_opened(&self, open: Open) {
        let opening = self.store.open(open).await.expect("the store answers").value;
        assert!(matches!(opening, Opening::Opened { .. }), "{:?} was not let in: {opening:?}", self.id);
    }

    /// The sign of life that the store has of this node.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { session: self.session, sequence: self.sequence.load(Ordering::Relaxed) }
    }

    pub(crate) fn next_attempt(&self) -> u64 {
        self.attempt.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A plain claim, to be sent as it is or changed first.
    pub(crate) fn claim(&self, name: &str) -> Claim {
        Claim::plain(self.session, election(name), self.next_attempt())
    }

    /// A claim that retires whoever showed this sign of life.
    pub(crate) fn claim_over(&self, name: &str, over: Stamp) -> Claim {
        Claim { over: Some(over), ..self.claim(name) }
    }

    /// A resignation of whatever this node holds of the election.
    pub(crate) fn resignation(&self, name: &str) -> Resign {
        Resign {
            session: self.session,
            election: election(name),
            attempt: self.next_attempt(),
            term: None,
            to: None,
            cause: Cause::Resigned,
        }
    }

    pub(crate) async fn send(&self, claim: Claim) -> Standing {
        self.store.claim(claim).await.expect("the session is live and the store answers").value
    }

    /// Claims, and demands the lease.
    pub(crate) async fn lead(&self, name: &str) -> Term {
        leading(self.send(self.claim(name)).await)
    }

    /// Claims, and demands to be refused.
    pub(crate) async fn stand(&self, name: &str) -> Record {
        waiting(self.send(self.claim(name)).await)
    }

    pub(crate) async fn resign(&self, name: &str) {
        self.store.resign(self.resignation(name)).await.expect("the store answers");
    }

    /// Resigns in favour of this node.
    pub(crate) async fn hand_over(&self, name: &str, to: &str) {
        let to = NodeId::new(to).expect("the suite uses good names");
        let resign = Resign { to: Some(to), ..self.resignation(name) };
        self.store.resign(resign).await.expect("the store answers");
    }

    pub(crate) async fn renew_as(&self, sequence: Sequence) -> Result<Renewal<ElectionName>, StoreError> {
        Ok(self.store.renew(self.session, sequence, 1).await?.value)
    }

    /// Shows a new sign of life.
    pub(crate) async fn renew(&self) -> Renewal<ElectionName> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        self.renew_as(sequence).await.expect("the session is live and the store answers")
    }

    pub(crate) async fn close(&self) {
        self.store.close(self.session, Cause::Resigned).await.expect("the store answers");
    }

    /// Demands that the session is over, whatever is asked of it.
    pub(crate) async fn expect_lost(&self) {
        let renewal = self.renew_as(1_000_000).await;
        assert!(matches!(renewal, Err(StoreError::SessionLost)), "renewed a dead session: {renewal:?}");
        let claim = self.store.claim(self.claim("after-the-end")).await;
        assert!(matches!(claim, Err(StoreError::SessionLost)), "a dead session claimed: {claim:?}");
    }
}

/// The term of a standing that must be leading.
pub(crate) fn leading(standing: Standing) -> Term {
    match standing {
        Standing::Leading { term } => term,
        other => panic!("a claim that had to be granted was not: {other:?}"),
    }
}

/// The election as it was shown to a claim that must not be granted.
pub(crate) fn waiting(standing: Standing) -> Record {
    match standing {
        Standing::Waiting { seen } => seen,
        Standing::Leading { term } => panic!("a claim that had to be refused was granted term {term}"),
    }
}

pub(crate) async fn read(store: &Arc<dyn Store>, name: &str) -> Record {
    store.read(election(name)).await.expect("the store answers").value
}

pub(crate) async fn holder(store: &Arc<dyn Store>, name: &str) -> Option<Holder> {
    read(store, name).await.holder
}

/// The nodes that stand, in order of succession.
pub(crate) async fn candidates(store: &Arc<dyn Store>, name: &str) -> Vec<String> {
    let told = store.candidates(election(name)).await.expect("the store answers");
    told.value.iter().map(|candidate| candidate.node.to_string()).collect()
}

/// The data of the newest event of an election, and what it records.
pub(crate) async fn last_event(store: &Arc<dyn Store>, name: &str) -> (EventKind, serde_json::Value) {
    let last = events(store, name).await.pop().expect("there is a history");
    (last.kind, serde_json::from_str(&last.data).expect("the data is JSON"))
}

/// The history of one election.
pub(crate) async fn events(store: &Arc<dyn Store>, name: &str) -> Vec<EventRecord> {
    let query = EventQuery { election: Some(election(name)), ..EventQuery::default() };
    store.events(query).await.expect("the store answers").value
}
