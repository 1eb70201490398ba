//! For load balancers and orchestrators: an answer in a status code.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use super::Api;
use super::answers::{YES, Yes};
use super::cluster::Now;
use crate::problem::Problem;

const ALLOW: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// Whether this node leads, decided at this instant
#[utoipa::path(get, path = "/leader", operation_id = "is_leader", tag = "probes", responses(
    (status = 200, description = "It does", body = Yes),
    (status = 503, description = "It does not", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn leader(State(api): State<Api>) -> Response {
    match api.gate().check() {
        Ok(_) => Json(YES).into_response(),
        Err(_) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this node does not lead").into_response(),
    }
}

/// Whether this node follows a leader that is known to it
#[utoipa::path(get, path = "/follower", operation_id = "is_follower", tag = "probes", responses(
    (status = 200, description = "It does", body = Yes),
    (status = 503, description = "It leads, or knows of no leader", body = Problem,
     content_type = "application/problem+json")))]
pub(super) async fn follower(State(api): State<Api>) -> Response {
    let now = Now::of(&api);
    if now.follows() {
        return Json(YES).into_response();
    }
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this node does not follow a leader").into_response()
}

/// `OPTIONS /leader`: the same status as for GET, which is what some load balancers ask by.
pub(super) async fn leader_options(api: State<Api>) -> Response {
    with_methods(leader(api).await)
}

/// `OPTIONS /follower`: the same status as for GET.
pub(super) async fn follower_options(api: State<Api>) -> Response {
    with_methods(follower(api).await)
}

fn with_methods(mut response: Response) -> Response {
    response.headers_mut().insert(header::ALLOW, ALLOW);
    response
}

/// Whether this process is alive
#[utoipa::path(get, path = "/live", tag = "probes", responses(
    (status = 200, description = "It answers, and its driver runs", body = Yes),
    (status = 503, description = "Its driver has died: restart it", body = Problem,
     content_type = "application/problem+json")))]
pub(super) async fn live(State(api): State<Api>) -> Response {
    if api.node().held().is_over() && !api.is_stopping() {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the driver of this node has ended");
        return problem.detail("restart the process").into_response();
    }
    Json(YES).into_response()
}

/// Whether this node can do its part, leading or not
#[utoipa::path(get, path = "/ready", tag = "probes", responses(
    (status = 200, description = "It is registered, and in touch with the store", body = Yes),
    (status = 503, description = "It is not", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn ready(State(api): State<Api>) -> Response {
    if Now::of(&api).fresh(&api) && !api.is_stopping() {
        return Json(YES).into_response();
    }
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this node is not ready");
    let trouble = api.cluster().view().trouble.clone();
    let reason = trouble.unwrap_or_else(|| String::from("it is not registered (yet), or on its way out"));
    problem.detail(reason).into_response()
}
