//! Requests on their way to the store: a bounded number at a time, but for the session's own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Answer, ElectionName, Failure, Instant, Request, RequestId, StoreIdentity, Verb};
use tenure_store::{Cause, Claim, NodeInfo, Open, Pending, Reply, Resign, Store, StoreError, clock};

use tracing::Instrument;
use tracing::field::Empty;

use super::slots::Slots;
use crate::event::NodeEvent;

/// How many requests about elections are under way at a time. More would not be faster on any
/// store, and would stand in the way of renewals.
const AT_ONCE: usize = 64;
/// The machine gives up first, so that an answer in the last moment is never cut off by us.
const SLACK: Duration = Duration::from_millis(10);

/// What came of a request.
pub(super) struct Response {
    pub id: RequestId,
    pub verb: &'static str,
    pub took: Duration,
    pub outcome: Result<(StoreIdentity, Answer<ElectionName>), StoreError>,
}

#[derive(Default)]
pub(super) struct Requests {
    under_way: FuturesUnordered<Pending<'static, Response>>,
    limited: usize,
    pub trouble: Trouble,
}

impl Requests {
    /// Whether one more request about an election may be sent.
    pub(super) const fn room(&self) -> bool {
        self.limited < AT_ONCE
    }

    pub(super) fn send(
        &mut self,
        request: Request,
        slots: &Slots,
        store: &Arc<dyn Store>,
        info: &NodeInfo,
        now: Instant,
    ) {
        let key = request.id.election();
        let slot = key.and_then(|key| slots.get(key));
        let election = slot.map(|slot| slot.name.clone());
        let cause = match &request.verb {
            Verb::Close { .. } => slots.cause_of_closing(),
            _ => slot
                .and_then(|slot| slot.office.as_ref())
                .map_or_else(Cause::default, |office| office.cause()),
        };
        self.limited += usize::from(key.is_some());
        self.under_way.push(send(request, election, cause, store, info, now));
    }

    /// The next response; `None` if nothing is under way.
    pub(super) async fn next(&mut self) -> Option<Response> {
        let response = self.under_way.next().await?;
        self.limited -= usize::from(response.id.election().is_some());
        Some(response)
    }
}

fn send(
    request: Request,
    election: Option<ElectionName>,
    cause: Cause,
    store: &Arc<dyn Store>,
    info: &NodeInfo,
    now: Instant,
) -> Pending<'static, Response> {
    let (store, id) = (Arc::clone(store), request.id);
    let verb = word(&request.verb);
    let limit = request.give_up.since(now) + SLACK;
    // On its own, and not a part of the node's: that one lasts as long as the process.
    let span = tracing::debug_span!(
        target: "tenure", parent: None, "store", node = %info.id, verb,
        election = election.as_ref().map(ElectionName::as_str), error = Empty
    );
    let info = matches!(request.verb, Verb::Open { .. }).then(|| info.clone());
    let noted = span.clone();
    let asked = async move {
        let sent = clock::now();
        let answer = ask(&*store, request.verb, election, info, cause);
        let outcome = tokio::time::timeout(limit, answer)
            .await
            .unwrap_or_else(|_| Err(StoreError::indeterminate(format!("no answer within {limit:?}"))));
        noted.record("error", outcome.as_ref().err().map(tracing::field::display));
        Response { id, verb, took: clock::now().since(sent), outcome }
    };
    Box::pin(asked.instrument(span))
}

async fn ask(
    store: &dyn Store,
    verb: Verb,
    election: Option<ElectionName>,
    info: Option<NodeInfo>,
    cause: Cause,
) -> Result<(StoreIdentity, Answer<ElectionName>), StoreError> {
    fn told<T>(
        reply: Reply<T>,
        answer: fn(T) -> Answer<ElectionName>,
    ) -> Result<(StoreIdentity, Answer<ElectionName>), StoreError> {
        reply.map(|told| (told.store, answer(told.value)))
    }
    match (verb, election, info) {
        (Verb::Open { session, sequence, ttl, supersedes, over }, _, Some(node)) => {
            let request = Open { session, sequence, ttl, node, supersedes, over };
            told(store.open(request).await, Answer::Open)
        }
        (Verb::Renew { session, sequence, attempt }, ..) => {
            told(store.renew(session, sequence, attempt).await, Answer::Renew)
        }
        (Verb::Close { session }, ..) => told(store.close(session, cause).await, |()| Answer::Close),
        (
            Verb::Claim { session, attempt, priority, over, tell_only, above, since, election: _ },
            Some(election),
            _,
        ) => {
            let request = Claim { session, election, attempt, priority, over, tell_only, above, since };
            told(store.claim(request).await, Answer::Claim)
        }
        (Verb::Resign { session, attempt, term, to, election: _ }, Some(election), _) => {
            let request = Resign { session, election, attempt, term, to, cause };
            told(store.resign(request).await, |()| Answer::Resign)
        }
        (Verb::Read { .. }, Some(election), _) => told(store.read(election).await, Answer::Read),
        (Verb::Open { .. } | Verb::Claim { .. } | Verb::Resign { .. } | Verb::Read { .. }, ..) => {
            Err(StoreError::unavailable("the election is not known any more"))
        }
    }
}

const fn word(verb: &Verb) -> &'static str {
    match verb {
        Verb::Open { .. } => "open",
        Verb::Renew { .. } => "renew",
        Verb::Claim { .. } => "claim",
        Verb::Resign { .. } => "resign",
        Verb::Close { .. } => "close",
        Verb::Read { .. } => "read",
    }
}

/// What the store complains of. Said when it changes, not every time.
#[derive(Default)]
pub(super) struct Trouble {
    /// The last complaint, until a request succeeds.
    pub last: Option<StoreError>,
    /// Since when there is no answer.
    since: Option<Instant>,
}

impl Trouble {
    /// An answer has come. What there is to tell, if there was none before.
    pub(super) fn over(&mut self, now: Instant) -> Option<NodeEvent> {
        self.last = None;
        self.since.take().map(|since| NodeEvent::StoreBack { away: now.since(since) })
    }

    /// No answer has come. What there is to tell, if that is new.
    pub(super) fn arose(
        &mut self,
        verb: &'static str,
        error: StoreError,
        now: Instant,
    ) -> (Failure, Option<NodeEvent>) {
        let message = error.to_string();
        let mut event = None;
        if let StoreError::Unavailable(problem) | StoreError::Indeterminate(problem) = &error
            && self.since.is_none()
        {
            self.since = Some(now);
            event = Some(NodeEvent::StoreLost { problem: problem.to_string() });
        } else if self.last.as_ref().is_none_or(|last| last.to_string() != message) {
            tracing::warn!(target: "tenure", verb, error = %message, "a request to the store failed");
        }
        let failure = match &error {
            StoreError::Unavailable(_) => Failure::Unavailable,
            StoreError::Indeterminate(_) => Failure::Indeterminate,
            StoreError::SessionLost => Failure::SessionLost,
            StoreError::Misconfigured(_) => Failure::Misconfigured,
        };
        self.last = Some(error);
        (failure, event)
    }
}
