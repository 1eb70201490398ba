//! What every request and every answer goes through.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};

use super::cluster::Now;
use super::{Api, page};
use crate::leader_only::headers::{self, TENURE_LEADER, TENURE_TERM};
use crate::problem::Problem;

/// How long a request may take to be answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// Every answer carries the term and the leader, where they are known, and is kept by nobody. What is only
/// read may also be shown by the pages of the other nodes.
pub(super) async fn name_the_leader(State(api): State<Api>, request: Request, next: Next) -> Response {
    let reads = request.method() == Method::GET;
    let reader = if reads { page::reader(&api.cluster().view(), request.headers()) } else { None };
    let mut response = next.run(request).await;
    let gate = api.gate();
    let named = response.headers_mut();
    match (gate.check(), gate.leader()) {
        (Ok(term), _) => {
            named.insert(TENURE_TERM, headers::term(term));
            named.insert(TENURE_LEADER, headers::node(gate.node()));
        }
        (Err(_), Some(leader)) => {
            named.insert(TENURE_TERM, headers::term(leader.term));
            named.insert(TENURE_LEADER, headers::node(&leader.node));
        }
        // The watch may have seen more than the gate has heard.
        (Err(_), None) => {
            let now = Now::of(&api);
            named.insert(TENURE_TERM, headers::term(now.term(&api)));
            if let Some(leader) = now.leader() {
                named.insert(TENURE_LEADER, headers::node(leader));
            }
        }
    }
    if let Some(reader) = reader {
        named.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, reader);
        named.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    named.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    named.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Who calls this node by a name that is not its own gets no answer.
pub(super) async fn known_by_name(State(api): State<Api>, request: Request, next: Next) -> Response {
    let named = request.uri().authority().map(http::uri::Authority::as_str);
    let host = named.or_else(|| request.headers().get(header::HOST).and_then(|host| host.to_str().ok()));
    match host {
        Some(host) if api.access().knows(host) => in_time(next.run(request)).await,
        _ => Problem::new(StatusCode::MISDIRECTED_REQUEST, "this node does not go by that name")
            .detail("call it by its address, or start it with --allow-host NAME")
            .into_response(),
    }
}

/// A request whose body does not come is not waited for. Streams begin at once, and go on as they like.
async fn in_time(answer: impl Future<Output = Response>) -> Response {
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(|_| {
        Problem::new(StatusCode::REQUEST_TIMEOUT, "the request did not come whole in time").into_response()
    })
}

/// 404.
pub(super) async fn nothing_here() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing here").detail("/openapi.json says what there is")
}

/// 405.
pub(super) async fn not_that_way() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this is not asked for in that way")
        .detail("/openapi.json says how")
}
