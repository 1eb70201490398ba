//! The conformance case for ages is proven: a store that tells them wrongly does not pass it.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{
    Age, Capabilities, ElectionName, NodeId, Opening, Record, Renewal, Sequence, SessionId, Stamp, Standing,
};
use tenure_memory::MemoryStore;
use tenure_store::{
    Candidate, Cause, Claim, Declaration, Deletion, EventQuery, EventRecord, Finding, HealthReport, Hints,
    NodeRecord, Open, Options, Pending, Petitioned, Reply, Resign, Store, clock,
};
use tenure_testkit::conformance::{self, Fixture};

/// A memory store whose records show what `told` makes of the true ages.
struct Misdated {
    inner: MemoryStore,
    told: fn(Duration) -> Age,
}

impl Store for Misdated {
    fn read(&self, election: ElectionName) -> Pending<'_, Reply<Record>> {
        Box::pin(async move {
            let mut told = self.inner.read(election).await?;
            if let Some(holder) = &mut told.value.holder
                && let Age::Exact(age) = holder.pulse.age
            {
                holder.pulse.age = (self.told)(age);
            }
            Ok(told)
        })
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn open(&self, request: Open) -> Pending<'_, Reply<Opening>> {
        self.inner.open(request)
    }
    fn renew(
        &self,
        session: SessionId,
        sequence: Sequence,
        attempt: u32,
    ) -> Pending<'_, Reply<Renewal<ElectionName>>> {
        self.inner.renew(session, sequence, attempt)
    }
    fn claim(&self, request: Claim) -> Pending<'_, Reply<Standing>> {
        self.inner.claim(request)
    }
    fn resign(&self, request: Resign) -> Pending<'_, Reply<()>> {
        self.inner.resign(request)
    }
    fn close(&self, session: SessionId, cause: Cause) -> Pending<'_, Reply<()>> {
        self.inner.close(session, cause)
    }
    fn delete(&self, election: ElectionName, force: bool) -> Pending<'_, Reply<Deletion>> {
        self.inner.delete(election, force)
    }
    fn petition(&self, election: ElectionName, to: Option<NodeId>) -> Pending<'_, Reply<Petitioned>> {
        self.inner.petition(election, to)
    }
    fn candidates(&self, election: ElectionName) -> Pending<'_, Reply<Vec<Candidate>>> {
        self.inner.candidates(election)
    }
    fn elections(&self) -> Pending<'_, Reply<Vec<(ElectionName, Record)>>> {
        self.inner.elections()
    }
    fn nodes(&self) -> Pending<'_, Reply<Vec<NodeRecord>>> {
        self.inner.nodes()
    }
    fn retire(&self, over: Stamp) -> Pending<'_, Reply<bool>> {
        self.inner.retire(over)
    }
    fn purge(&self, older_than: Duration) -> Pending<'_, Reply<u64>> {
        self.inner.purge(older_than)
    }
    fn declare(&self, declaration: Declaration) -> Pending<'_, Reply<bool>> {
        self.inner.declare(declaration)
    }
    fn report_health(&self, report: HealthReport) -> Pending<'_, Reply<bool>> {
        self.inner.report_health(report)
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
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Runs the conformance case against a store that tells such ages.
fn check(told: fn(Duration) -> Age) {
    let store = MemoryStore::new(Options::default());
    let fixture = Fixture::new(move |options| {
        let connection: Arc<dyn Store> = Arc::new(Misdated { inner: store.with(options), told });
        std::future::ready(Ok(connection))
    });
    conformance::run(std::future::ready(fixture), conformance::ages::an_age_grows_and_a_renewal_resets_it);
}

/// What a clock of the store's own shows.
fn store_clock() -> Duration {
    Duration::from_nanos(clock::now().as_nanos())
}

#[test]
fn a_store_that_tells_true_ages_passes() {
    check(Age::Exact);
    check(|age| Age::Told { age, clock: store_clock() });
}

#[test]
#[should_panic(expected = "older than the renewal")]
fn a_store_that_tells_ages_a_thousand_times_too_large_fails() {
    check(|age| Age::Told { age: age * 1000, clock: store_clock() });
}

#[test]
#[should_panic(expected = "the store's clock ran away")]
fn a_store_whose_clock_runs_away_fails() {
    check(|age| Age::Told { age, clock: store_clock() * 1_000_000 });
}

#[test]
#[should_panic(expected = "older than the renewal")]
fn a_store_whose_exact_ages_are_a_thousand_times_too_large_fails() {
    check(|age| Age::Exact(age * 1000));
}

/// For ages that are told this is no promise: a candidate only waits longer.
#[test]
#[should_panic(expected = "younger than the renewal")]
fn a_store_whose_exact_ages_are_a_thousand_times_too_small_fails() {
    check(|age| Age::Exact(age / 1000));
}
