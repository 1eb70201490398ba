//! What is said to those who are not let through.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tenure::{Gate, KnownLeader};

use super::body::{self, Foreign};
use super::headers::{self, TENURE_LEADER, TENURE_TERM};

/// In whole seconds, and a failover takes a few at most: as soon as this header can say.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
/// gRPC's code for "try again".
const UNAVAILABLE: HeaderValue = HeaderValue::from_static("14");

/// Why a request is answered by us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// This node does not lead. Nothing was done.
    NotLeader,
    /// Nobody leads, as far as is known. Nothing was done.
    NoLeader,
    /// The leader cannot be reached. Nothing was done.
    LeaderUnreachable,
    /// The leader has not told where it is, or what it told is unusable. Nothing was done.
    NoAddress,
    /// The request has been here before. Nothing was done.
    Loop,
    /// The request cannot be forwarded in its protocol. Nothing was done.
    CannotForward,
    /// The program cannot be reached. Nothing was done.
    UpstreamUnreachable,
    /// The connection broke, or what came back was no HTTP. The request may have been executed.
    Broken,
    /// No answer in time. The request may have been executed.
    TimedOut,
    /// Leadership was over before the request was done, and it was cut off. It may have been executed.
    CutOff,
}

impl Problem {
    const fn status(self) -> StatusCode {
        match self {
            Self::Broken => StatusCode::BAD_GATEWAY,
            Self::TimedOut | Self::CutOff => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Whether it is certain that nothing was done, so that a client may try again.
    const fn is_harmless(self) -> bool {
        !matches!(self, Self::Broken | Self::TimedOut | Self::CutOff)
    }

    const fn title(self) -> &'static str {
        match self {
            Self::NotLeader => "this node does not lead",
            Self::NoLeader => "nobody leads at the moment",
            Self::LeaderUnreachable => "the leader cannot be reached",
            Self::NoAddress => "the leader has no usable address",
            Self::Loop => "the nodes do not agree on who leads yet",
            Self::CannotForward => "this protocol cannot be forwarded; ask the leader itself",
            Self::UpstreamUnreachable => "the program behind this node cannot be reached",
            Self::Broken => "the answer was lost; the request may have been executed",
            Self::TimedOut => "no answer in time; the request may have been executed",
            Self::CutOff => "leadership was lost on the way; the request may have been executed",
        }
    }
}

/// Says it: problem+json, or what gRPC clients understand.
pub(super) fn problem(problem: Problem, gate: &Gate, grpc: bool) -> Response<Foreign> {
    let leader = gate.leader();
    let mut response = if grpc { in_grpc(problem) } else { in_json(problem, leader.as_deref()) };
    let headers = response.headers_mut();
    if problem.is_harmless() {
        headers.insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    name_leader(headers, gate, leader.as_deref());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn in_json(problem: Problem, leader: Option<&KnownLeader>) -> Response<Foreign> {
    let status = problem.status();
    let told = json!({
        "type": "about:blank",
        "title": problem.title(),
        "status": status.as_u16(),
        "executed": if problem.is_harmless() { json!(false) } else { Value::Null },
        "leader_id": leader.map(|leader| leader.node.as_str()),
        "term": leader.map(|leader| leader.term.number()),
    });
    let mut response = Response::new(body::text(told.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, PROBLEM_JSON);
    response
}

/// A gRPC status without a body is told in headers ("trailers only").
fn in_grpc(problem: Problem) -> Response<Foreign> {
    let mut response = Response::new(body::text(String::new()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, GRPC);
    headers.insert("grpc-status", UNAVAILABLE);
    headers.insert("grpc-message", HeaderValue::from_static(problem.title()));
    response
}

/// Sends the client to the leader. 307 keeps method and body.
pub(super) fn redirect(to: &http::Uri, gate: &Gate, leader: &KnownLeader) -> Response<Foreign> {
    let mut response = Response::new(body::text(String::new()));
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let headers = response.headers_mut();
    if let Ok(location) = HeaderValue::from_str(&to.to_string()) {
        headers.insert(header::LOCATION, location);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    name_leader(headers, gate, Some(leader));
    response
}

/// `Tenure-Leader` and `Tenure-Term`, as far as they are known.
fn name_leader(headers: &mut HeaderMap, gate: &Gate, leader: Option<&KnownLeader>) {
    if let Some(leader) = leader {
        headers.insert(TENURE_LEADER, headers::node(&leader.node));
    }
    headers.insert(TENURE_TERM, headers::term(leader.map_or_else(|| gate.term(), |leader| leader.term)));
}

/// Whether a request speaks gRPC.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}
