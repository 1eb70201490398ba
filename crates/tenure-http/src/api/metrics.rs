//! `/metrics`: what was counted, and what is so at this instant.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use tenure::NodeState;
use tenure_store::clock;

use super::Api;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// For Prometheus
#[utoipa::path(get, path = "/metrics", tag = "probes", responses(
    (status = 200, description = "The text format; OpenMetrics for those who accept it", content(
        (String = "text/plain"), (String = "application/openmetrics-text")))))]
pub(super) async fn metrics(State(api): State<Api>, headers: HeaderMap) -> Response {
    let (metrics, gate, view) = (api.metrics(), api.gate(), api.cluster().view());
    let leads = gate.check().is_ok();
    let held = api.node().held().now();
    let remaining = if leads { held.until.since(clock::now()) } else { Duration::ZERO };
    metrics.leads(gate.election().as_str(), leads, gate.term().max(view.record.term), remaining);
    let count = |wanted: fn(&tenure::Member) -> bool| view.members.iter().filter(|m| wanted(m)).count();
    metrics.nodes("live", count(|member| member.lives));
    metrics.nodes("silent", count(|member| member.record.state == NodeState::Live && !member.lives));
    metrics.nodes("left", count(|member| member.record.state == NodeState::Left));
    metrics.nodes("expired", count(|member| member.record.state == NodeState::Expired));
    api.children().iter().for_each(|child| metrics.child(child));
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if accepts.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
        return ([(CONTENT_TYPE, OPEN_METRICS)], metrics.open_metrics()).into_response();
    }
    ([(CONTENT_TYPE, TEXT)], metrics.text()).into_response()
}
