//! For the program that works on this node's partitions: what it may work on, when to stop, and that it has.

use std::convert::Infallible;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::json;
use tenure::{TaskListName, Term};
use tenure_store::clock;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use utoipa::{IntoParams, ToSchema};

use super::Api;
use super::answers::{Mine, YES, Yes, millis};
use super::orders::{Refused, bad, parse, whole};
use crate::problem::Problem;
use crate::worker::{Following, News, NotFollowed, NotReleased};

/// Of which task list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// Only of this task list.
    #[param(nullable = false, min_length = 1, max_length = 128)]
    task_list: Option<String>,
}

/// What a program works on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Work {
    /// One of the task lists that this node was started for.
    #[schema(min_length = 1, max_length = 128)]
    task_list: String,
}

/// What a program has stopped to work on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    /// Of which task list.
    #[schema(min_length = 1, max_length = 128)]
    task_list: String,
    /// Which.
    partition: u32,
    /// Under which term it was assigned.
    term: u64,
}

/// The partitions that this node owns, for the program beside it
#[utoipa::path(get, path = "/cluster/partitions/mine", tag = "cluster", params(Wanted), responses(
    (status = 200, description = "By task list and number", body = [Mine]),
    (status = 400, description = "The request makes no sense", body = Problem,
     content_type = "application/problem+json")))]
pub(super) async fn mine(
    State(api): State<Api>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Vec<Mine>>, Problem> {
    let Query(wanted) = wanted.map_err(|rejection| bad(rejection.body_text()))?;
    let list = wanted.task_list.map(name).transpose()?;
    let rows = api.worker().map_or_else(Vec::new, |worker| worker.rows());
    let asked = rows.iter().filter(|row| list.as_ref().is_none_or(|list| *list == row.list));
    Ok(Json(asked.map(Mine::of).collect()))
}

/// Works on a task list for as long as the connection lasts: a stream of what the program may work on
///
/// First comes what the node owns already, then what changes: `partition_assigned`, `partition_revoked`,
/// `partition_released`, and `lease_renewed` with a new deadline.
#[utoipa::path(post, path = "/cluster/partitions/work", tag = "orders", request_body = Work,
    security(("token" = [])), responses(
    (status = 200, description = "A stream of server-sent events", body = String, content_type = "text/event-stream"),
    Refused))]
pub(super) async fn work(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    api.access().may_change(&headers)?;
    let Work { task_list } = parse(&whole(body)?)?;
    let list = name(task_list)?;
    let unknown = || {
        Problem::new(StatusCode::CONFLICT, format!("this node does not work on `{list}`"))
            .detail("start it with --work DOMAIN/TASKLIST")
    };
    let following = api.worker().ok_or_else(unknown)?.follow(&list).map_err(|why| match why {
        NotFollowed::Unknown => unknown(),
        NotFollowed::Attended => {
            Problem::new(StatusCode::CONFLICT, format!("another program works on `{list}` here already"))
                .detail("a node has one; if that is gone, its connection ends in a moment")
        }
    })?;
    let place = api.stream_place().ok_or_else(|| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too many event streams are open on this node")
    })?;
    let told = told(following, api.stopping().clone(), place);
    let mut response = Sse::new(told).keep_alive(KeepAlive::default()).into_response();
    response.headers_mut().insert("x-accel-buffering", http::HeaderValue::from_static("no"));
    Ok(response)
}

/// The program has stopped to work on a partition that was revoked: it may be given to another node
#[utoipa::path(post, path = "/cluster/partitions/release", tag = "orders", request_body = Release,
    security(("token" = [])), responses(
    (status = 200, description = "It is given back", body = Yes),
    Refused))]
pub(super) async fn release(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Yes>, Problem> {
    api.access().may_change(&headers)?;
    let Release { task_list, partition, term } = parse(&whole(body)?)?;
    let list = name(task_list)?;
    let released = api
        .worker()
        .map_or(Err(NotReleased::Unknown), |worker| worker.release(&list, partition, Term::new(term)));
    released.map(|()| Json(YES)).map_err(|why| match why {
        NotReleased::Unknown => Problem::new(
            StatusCode::CONFLICT,
            format!("this node does not own partition {partition} of `{list}` under term {term}"),
        )
        .detail("there is nothing to release; it may have been done before"),
        NotReleased::NotRevoked => {
            Problem::new(StatusCode::CONFLICT, format!("partition {partition} of `{list}` was not revoked"))
                .detail("`tenure partitions move` or `drain` has it given to another node")
        }
    })
}

fn name(list: String) -> Result<TaskListName, Problem> {
    TaskListName::new(list).map_err(|error| bad(error.to_string()))
}

fn told(
    following: Following,
    stopping: CancellationToken,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Sent, Infallible>> {
    futures_util::stream::unfold((following, stopping, place), async |(mut following, stopping, place)| {
        let news = tokio::select! {
            biased;
            () = stopping.cancelled() => return None,
            news = following.next() => news?,
        };
        Some((Ok(sent(&following, &news)), (following, stopping, place)))
    })
}

fn sent(following: &Following, news: &News) -> Sent {
    let list = following.list().as_str();
    let (kind, data) = match news {
        News::Assigned(row) => ("partition_assigned", json!(Mine::of(row))),
        News::Revoked(row) => ("partition_revoked", json!(Mine::of(row))),
        News::Released(number, term) => {
            ("partition_released", json!({"task_list": list, "partition": number, "term": term.number()}))
        }
        News::Renewed(until) => {
            let left = millis(until.since(clock::now()));
            let deadline = until.as_nanos() / 1_000_000;
            ("lease_renewed", json!({"task_list": list, "expires_in_ms": left, "deadline_boot_ms": deadline}))
        }
    };
    Sent::default().event(kind).data(data.to_string())
}
