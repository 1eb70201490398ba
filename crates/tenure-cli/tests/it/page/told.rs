//! A node that tells a history which the test has written: it serves the real page, and answers as if it were noon.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde_json::{Value, json};
use tenure::{EventKind, EventRecord, Term, TermEnd};

use super::crowd::page;

pub const ELECTION: &str = "coordinator";
const NOON: &str = "2026-11-16T12:00:00.000000Z";

/// A line of history, at a time of that day.
pub fn line(time: &str, event: &str, node: &str, term: u64, data: Value) -> Value {
    let time = format!("2026-11-16T{time}000Z");
    let record = EventRecord {
        id: 0,
        sequence: 0,
        time: humantime::parse_rfc3339(&time).unwrap(),
        // What the page alone knows of ends no term.
        kind: EventKind::from_name(event).unwrap_or(EventKind::ElectionStarted),
        election: None,
        node: None,
        term: Term::new(term),
        data: data.to_string(),
    };
    let mut line =
        json!({"time": time, "event": event, "election": ELECTION, "node": node, "term": term, "data": data});
    if let Some(end) = TermEnd::of(&record) {
        let text = |moment| humantime::format_rfc3339_micros(moment).to_string();
        line["led_until"] = json!({"earliest": text(end.earliest), "latest": text(end.latest)});
    }
    line
}

/// Serves until the test ends.
pub fn serve(mut history: Vec<Value>) -> SocketAddr {
    for (event, id) in history.iter_mut().zip(1..) {
        event["id"] = json!(id);
    }
    let health = json!({"status": "healthy", "timestamp": NOON, "version": "0.1.0", "store_error": null});
    let leader = json!({"election": ELECTION, "leader_id": "gamma", "term": 4, "age_ms": 100, "expires_in_ms": 9900,
        "hostname": "c", "api_url": null});
    let status = json!({"node_id": "gamma", "election": ELECTION, "state": "leader", "is_leader": true,
        "leader_id": "gamma", "term": 4, "cluster_size": 1, "minimum_size": 1, "cluster_ready": true,
        "known_ms_ago": 5, "lease": null, "children": [], "nodes": []});
    let answers = |value: Value| get(|| async { axum::Json(value) });
    let events = |headers: HeaderMap| async move {
        match headers.get(header::ACCEPT).is_some_and(|kind| kind == "text/event-stream") {
            true => silence(),
            false => axum::Json(json!(history)).into_response(),
        }
    };
    let app = Router::new()
        .route("/", get(|| page("text/html", "page.html")))
        .route("/page.js", get(|| page("text/javascript", "page.js")))
        .route("/story.js", get(|| page("text/javascript", "story.js")))
        .route("/map.js", get(|| page("text/javascript", "map.js")))
        .route("/page.css", get(|| page("text/css", "page.css")))
        .route("/cluster/status", answers(status))
        .route("/cluster/health", answers(health))
        .route("/cluster/leader", answers(leader.clone()))
        .route("/cluster/elections", answers(json!([leader])))
        .route("/cluster/partitions", answers(json!([])))
        .route("/cluster/events", get(events))
        .route("/metrics", get(|| async { "" }));
    super::crowd::listen(app)
}

/// A stream on which nothing happens.
fn silence() -> Response {
    let nothing = stream::pending::<Result<String, std::convert::Infallible>>();
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(nothing)).into_response()
}
