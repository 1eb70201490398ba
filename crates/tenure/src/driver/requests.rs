//! Requests on their way to the store: a bounded number at a time, the session's own first.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tenure_core::{Answer, ElectionName, Failure, Instant, Request, RequestId, StoreIdentity, Verb};
use tenure_store::{Claim, NodeInfo, Open, Pending, Reply, Resign, Store, StoreError};

use super::slots::Slots;

/// How many requests about elections are under way at a time. More would not be faster on any
/// store, and would stand in the way of renewals.
const AT_ONCE: usize = 64;
/// The machine gives up first, so that an answer in the last moment is never cut off by us.
const SLACK: Duration = Duration::from_millis(10);

/// What came of a request.
pub(super) struct Response {
    pub id: RequestId,
    pub verb: &'static str,
    pub outcome: Result<(StoreIdentity, Answer), StoreError>,
    /// Counts against [`AT_ONCE`].
    limited: bool,
}

#[derive(Default)]
pub(super) struct Requests {
    under_way: FuturesUnordered<Pending<'static, Response>>,
    limited: usize,
    waiting: VecDeque<Addressed>,
    urgent: VecDeque<Addressed>,
    pub trouble: Trouble,
}

/// A request with the name of its election, which the machine does not know. The key may be
/// another election's by the time that the request is sent.
struct Addressed {
    request: Request,
    election: Option<ElectionName>,
}

impl Requests {
    pub(super) fn push(&mut self, request: Request, slots: &Slots) {
        let key = match request.verb {
            Verb::Open { .. } | Verb::Renew { .. } | Verb::Close { .. } => None,
            Verb::Claim { election, .. } | Verb::Resign { election, .. } | Verb::Read { election } => {
                Some(election)
            }
        };
        match key {
            None => self.urgent.push_back(Addressed { request, election: None }),
            Some(key) => {
                let election = slots.get(key).map(|slot| slot.name.clone());
                self.waiting.push_back(Addressed { request, election });
            }
        }
    }

    /// Sends what may be sent. What was given up while it waited is dropped: the machine knows.
    pub(super) fn start(&mut self, store: &Arc<dyn Store>, info: &NodeInfo, now: Instant) {
        while let Some(addressed) = self.urgent.pop_front() {
            self.under_way.push(send(addressed, store, info, now, false));
        }
        while self.limited < AT_ONCE
            && let Some(addressed) = self.waiting.pop_front()
        {
            if addressed.request.give_up > now {
                self.limited += 1;
                self.under_way.push(send(addressed, store, info, now, true));
            }
        }
    }

    /// The next response; `None` if nothing is under way.
    pub(super) async fn next(&mut self) -> Option<Response> {
        let response = self.under_way.next().await?;
        self.limited -= usize::from(response.limited);
        Some(response)
    }
}

fn send(
    addressed: Addressed,
    store: &Arc<dyn Store>,
    info: &NodeInfo,
    now: Instant,
    limited: bool,
) -> Pending<'static, Response> {
    let Addressed { request, election } = addressed;
    let (store, id) = (Arc::clone(store), request.id);
    let verb = word(&request.verb);
    let info = matches!(request.verb, Verb::Open { .. }).then(|| info.clone());
    let limit = request.give_up.since(now) + SLACK;
    Box::pin(async move {
        let answer = ask(&*store, request.verb, election, info);
        let outcome = tokio::time::timeout(limit, answer)
            .await
            .unwrap_or_else(|_| Err(StoreError::indeterminate(format!("no answer within {limit:?}"))));
        Response { id, verb, outcome, limited }
    })
}

async fn ask(
    store: &dyn Store,
    verb: Verb,
    election: Option<ElectionName>,
    info: Option<NodeInfo>,
) -> Result<(StoreIdentity, Answer), StoreError> {
    fn told<T>(reply: Reply<T>, answer: fn(T) -> Answer) -> Result<(StoreIdentity, Answer), StoreError> {
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
        (Verb::Close { session }, ..) => told(store.close(session).await, |()| Answer::Close),
        (
            Verb::Claim {
                session,
                attempt,
                priority,
                courteous,
                over,
                disinherit,
                tell_only,
                above,
                since,
                election: _,
            },
            Some(election),
            _,
        ) => {
            let request = Claim {
                session,
                election,
                attempt,
                priority,
                courteous,
                over,
                disinherit,
                tell_only,
                above,
                since,
            };
            told(store.claim(request).await, Answer::Claim)
        }
        (Verb::Resign { session, attempt, term, to, election: _ }, Some(election), _) => {
            let request = Resign { session, election, attempt, term, to };
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
    pub last: Option<String>,
}

impl Trouble {
    pub(super) fn over(&mut self) {
        if self.last.take().is_some() {
            tracing::info!(target: "tenure", "the store answers again");
        }
    }

    pub(super) fn arose(&mut self, verb: &'static str, error: &StoreError) -> Failure {
        let message = error.to_string();
        if self.last.as_ref() != Some(&message) {
            tracing::warn!(target: "tenure", verb, error = %message, "a request to the store failed");
            self.last = Some(message);
        }
        match error {
            StoreError::Unavailable(_) => Failure::Unavailable,
            StoreError::Indeterminate(_) => Failure::Indeterminate,
            StoreError::SessionLost => Failure::SessionLost,
            StoreError::Misconfigured(_) => Failure::Misconfigured,
        }
    }
}
