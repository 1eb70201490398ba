//! Questions about a ledger on their way to the store, and its answers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::partitions::{Ask, Demand};
use tenure_core::{ElectionName, Instant, StoreIdentity};
use tenure_store::{
    Leaf, Lease, LedgerQuery, Pending, Publication, Published, Release, Reply, Store, StoreError, Survey,
    clock,
};

/// The machines give up first, so that an answer in the last moment is never cut off by us.
const SLACK: Duration = Duration::from_millis(10);

/// Who has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Worker,
    /// The coordinator of this term of the node, counted: a later one does not know the question.
    Coordinator(u64),
}

/// What a store said.
pub(super) enum Heard {
    Survey(Survey),
    Leaf(Leaf),
    Published(Published),
    Acknowledged(u64),
}

/// What came of a question.
pub(super) struct Word {
    pub election: ElectionName,
    pub side: Side,
    pub serial: u64,
    pub verb: &'static str,
    pub took: Duration,
    pub outcome: Result<(StoreIdentity, Heard), StoreError>,
}

/// All questions that are under way.
#[derive(Default)]
pub(super) struct Questions {
    under_way: FuturesUnordered<Pending<'static, Word>>,
}

impl Questions {
    pub(super) fn put(
        &self,
        store: &Arc<dyn Store>,
        election: &ElectionName,
        side: Side,
        ask: Ask,
        now: Instant,
    ) {
        let (store, election) = (Arc::clone(store), election.clone());
        let limit = ask.give_up.since(now) + SLACK;
        let (serial, verb) = (ask.serial, word(&ask.demand));
        self.under_way.push(Box::pin(async move {
            let sent = clock::now();
            let asked = tokio::time::timeout(limit, put(&*store, election.clone(), ask.demand)).await;
            let outcome = asked
                .unwrap_or_else(|_| Err(StoreError::indeterminate(format!("no answer within {limit:?}"))));
            Word { election, side, serial, verb, took: clock::now().since(sent), outcome }
        }));
    }

    /// The next answer; `None` if nothing is under way.
    pub(super) async fn next(&mut self) -> Option<Word> {
        self.under_way.next().await
    }
}

/// What a request is called in metrics and in the log.
const fn word(demand: &Demand) -> &'static str {
    match demand {
        Demand::Survey => "read_workers",
        Demand::Read { .. } => "read_partitions",
        Demand::Publish { .. } => "assign_partitions",
        Demand::Acknowledge { .. } => "release_partitions",
    }
}

async fn put(
    store: &dyn Store,
    election: ElectionName,
    demand: Demand,
) -> Result<(StoreIdentity, Heard), StoreError> {
    fn told<T>(reply: Reply<T>, heard: fn(T) -> Heard) -> Result<(StoreIdentity, Heard), StoreError> {
        reply.map(|told| (told.store, heard(told.value)))
    }
    let ledger = store
        .ledger()
        .ok_or_else(|| StoreError::misconfigured("this store keeps no ledger of partitions"))?;
    match demand {
        Demand::Survey => told(ledger.survey(election).await, Heard::Survey),
        Demand::Read { since, of } => {
            told(ledger.leaf(LedgerQuery { election, since, of }).await, Heard::Leaf)
        }
        Demand::Publish { session, term, after, retire, changes } => {
            let lease = Lease { session, election, term };
            told(ledger.publish(Publication { lease, after, retire, changes }).await, Heard::Published)
        }
        Demand::Acknowledge { session, released } => {
            told(ledger.acknowledge(Release { election, session, released }).await, Heard::Acknowledged)
        }
    }
}
