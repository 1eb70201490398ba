//! The history: as a list, and as a stream that goes on where it was left.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use tenure::{ElectionName, EventQuery, EventRecord, Limit};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast};
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use super::Api;
use super::answers::Event;
use super::lists::ask;
use crate::feed::Feed;
use crate::problem::Problem;

const DEFAULT: u32 = 100;
const MOST: u32 = 1000;

/// Which part of the history.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only what came after the event with this id. Without it: the newest.
    #[param(nullable = false)]
    since: Option<u64>,
    /// At most so many (a list only): 1 to 1000, 100 if it is not said.
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Only of this election.
    #[param(nullable = false, min_length = 1, max_length = 128)]
    election: Option<String>,
}

/// The history, oldest first; with `Accept: text/event-stream` a stream that goes on
#[utoipa::path(get, path = "/cluster/events", tag = "cluster", params(Wanted,
    ("Last-Event-ID" = Option<u64>, Header, description = "A stream goes on after this event", nullable = false)),
    responses(
    (status = 200, description = "A list; or a stream of server-sent events", content(
        ([Event] = "application/json"), (String = "text/event-stream"))),
    (status = 400, description = "The request makes no sense", body = Problem,
     content_type = "application/problem+json"),
    (status = 503, description = "The store gives no answer, or there are too many streams", body = Problem,
     content_type = "application/problem+json")))]
pub(super) async fn events(
    State(api): State<Api>,
    headers: HeaderMap,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, Problem> {
    let bad =
        |detail: String| Problem::new(StatusCode::BAD_REQUEST, "the request makes no sense").detail(detail);
    let Query(wanted) = wanted.map_err(|rejection| bad(rejection.body_text()))?;
    let election = wanted.election.as_deref().map(ElectionName::new).transpose();
    let election = election.map_err(|error| bad(error.to_string()))?;
    if wanted.limit.is_some_and(|limit| !(1..=MOST).contains(&limit)) {
        return Err(bad(format!("`limit` is 1 to {MOST}")));
    }
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accepts.is_some_and(|accept| accept.contains("text/event-stream")) {
        let resume = match headers.get("last-event-id") {
            None => wanted.since,
            Some(id) => {
                let id = id.to_str().ok().and_then(|id| id.parse().ok());
                Some(id.ok_or_else(|| bad(String::from("`Last-Event-ID` is the id of an event: a number")))?)
            }
        };
        return stream(&api, resume, election);
    }
    let count = wanted.limit.unwrap_or(DEFAULT);
    let limit = if wanted.since.is_some() { Limit::Oldest(count) } else { Limit::Newest(count) };
    let _turn = api.turn().await?;
    let query = EventQuery { election, after: wanted.since.unwrap_or(0), limit: Some(limit) };
    let found = ask(api.node().store().events(query)).await?;
    Ok(Json(found.iter().map(Event::of).collect::<Vec<_>>()).into_response())
}

fn stream(api: &Api, resume: Option<u64>, election: Option<ElectionName>) -> Result<Response, Problem> {
    let place = api.stream_place().ok_or_else(|| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many event streams are open on this node")
            .detail("follow another node, or come back later")
    })?;
    let feed = api.feed().clone();
    let follower = Follower {
        // Subscribed before anything is read: what happens in between is not missed.
        news: feed.subscribe(),
        behind: resume.is_some(),
        last: resume.or_else(|| feed.last_id()).unwrap_or(0),
        feed,
        election,
        waiting: Vec::new().into_iter(),
        stopping: api.stopping().clone(),
        _place: place,
    };
    let mut response = Sse::new(follower.stream()).keep_alive(KeepAlive::default()).into_response();
    let headers = response.headers_mut();
    headers.insert("x-accel-buffering", http::HeaderValue::from_static("no")); // nginx, hand it on at once
    Ok(response)
}

/// One who follows the history.
struct Follower {
    feed: Feed,
    news: broadcast::Receiver<Arc<EventRecord>>,
    election: Option<ElectionName>,
    /// The last event that was sent, or after which it all begins.
    last: u64,
    /// There may be more in the store than in the news.
    behind: bool,
    waiting: std::vec::IntoIter<EventRecord>,
    stopping: CancellationToken,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    fn stream(self) -> impl Stream<Item = Result<Sent, Infallible>> {
        futures_util::stream::unfold(self, async |mut follower| {
            let event = follower.next().await?;
            Some((Ok(sent(&event)), follower))
        })
    }

    /// The next event; `None` once the node stops.
    async fn next(&mut self) -> Option<Arc<EventRecord>> {
        loop {
            let event = match self.waiting.next() {
                Some(event) => Arc::new(event),
                None if self.behind => {
                    self.catch_up().await?;
                    continue;
                }
                None => tokio::select! {
                    biased;
                    () = self.stopping.cancelled() => return None,
                    news = self.news.recv() => match news {
                        Ok(event) => event,
                        Err(RecvError::Lagged(_)) => {
                            self.behind = true;
                            continue;
                        }
                        Err(RecvError::Closed) => return None,
                    },
                },
            };
            if event.id <= self.last {
                continue; // read before it was news
            }
            self.last = event.id;
            if self.election.is_none() || self.election == event.election {
                return Some(event);
            }
        }
    }

    /// Reads a page from the store. If the store is away, the stream ends, and its reader comes back
    /// with the id of the last event that it has.
    async fn catch_up(&mut self) -> Option<()> {
        let page = tokio::select! {
            () = self.stopping.cancelled() => return None,
            page = self.feed.after(self.last) => page.ok()?,
        };
        self.behind = page.len() >= crate::feed::PAGE as usize;
        self.waiting = page.into_iter();
        Some(())
    }
}

fn sent(event: &EventRecord) -> Sent {
    // Text, numbers and JSON always have a text.
    let data = serde_json::to_string(&Event::of(event)).unwrap_or_default();
    Sent::default().id(event.id.to_string()).event(event.kind.name()).data(data)
}
