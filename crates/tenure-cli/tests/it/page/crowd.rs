//! A node of a cluster that is far too large to start: it serves the real page, and answers like one of many.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

pub const NODES: usize = 500;
pub const PARTITIONS: usize = 10_000;
pub const EVENTS: usize = 100_000;
/// How many partitions are on their way, and how many are nobody's.
pub const REVOKING: usize = 40;
pub const VACANT: usize = 60;

#[derive(Default)]
pub struct Crowd {
    /// How often the ledger was asked for.
    pub surveys: AtomicUsize,
    /// Whether what was on its way has arrived.
    pub settled: AtomicBool,
}

impl Crowd {
    /// Serves until the test ends.
    pub fn serve() -> (Arc<Self>, SocketAddr) {
        let crowd = Arc::new(Self::default());
        let app = Router::new()
            .route("/", get(|| page("text/html", "page.html")))
            .route("/page.js", get(|| page("text/javascript", "page.js")))
            .route("/story.js", get(|| page("text/javascript", "story.js")))
            .route("/map.js", get(|| page("text/javascript", "map.js")))
            .route("/page.css", get(|| page("text/css", "page.css")))
            .route("/cluster/status", get(|| async { axum::Json(status()) }))
            .route("/cluster/health", get(|| async { axum::Json(health()) }))
            .route("/cluster/leader", get(|| async { axum::Json(leader()) }))
            .route("/cluster/elections", get(|| async { axum::Json(json!([leader()])) }))
            .route("/cluster/partitions", get(partitions))
            .route("/cluster/events", get(events))
            .route("/metrics", get(|| async { "" }))
            .with_state(Arc::clone(&crowd));
        let address = listen(app);
        (crowd, address)
    }
}

/// Serves this until the test ends.
pub fn listen(app: Router) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            axum::serve(tokio::net::TcpListener::from_std(listener).unwrap(), app).await.unwrap();
        });
    });
    address
}

/// A file of the page, as it is in the sources, under the policy of a node.
pub async fn page(kind: &'static str, name: &str) -> Response {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tenure-http/src/api/page");
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'";
    let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, policy)];
    (headers, std::fs::read_to_string(place.join(name)).unwrap()).into_response()
}

fn name(number: usize) -> String {
    format!("node-{number:03}")
}

const NOW: &str = "2026-11-16T12:00:00.000000Z";

fn status() -> Value {
    let node = |number| {
        json!({"node_id": name(number), "state": "live", "hostname": format!("host-{number}"), "api_url": null,
            "version": "0.1.0", "joined_at": NOW, "renewed_at": NOW})
    };
    let nodes: Vec<Value> = (0..NODES).map(node).collect();
    json!({"node_id": name(0), "election": "coordinator", "state": "leader", "is_leader": true,
        "leader_id": name(0), "term": 7, "cluster_size": NODES, "minimum_size": 3, "cluster_ready": true,
        "known_ms_ago": 5, "nodes": nodes, "lease": null, "children": []})
}

fn health() -> Value {
    json!({"status": "healthy", "timestamp": NOW, "version": "0.1.0", "store_error": null})
}

fn leader() -> Value {
    json!({"election": "coordinator", "leader_id": name(0), "term": 7, "age_ms": 100, "expires_in_ms": 9900,
        "hostname": "host-0", "api_url": null})
}

/// Four task lists of the same size; the first has some that move, and some that nobody has.
async fn partitions(State(crowd): State<Arc<Crowd>>) -> Response {
    crowd.surveys.fetch_add(1, Ordering::SeqCst);
    let settled = crowd.settled.load(Ordering::SeqCst);
    let row = |number: usize| {
        let (list, partition) = (number / (PARTITIONS / 4), number % (PARTITIONS / 4));
        let (state, owner) = match number {
            number if number < REVOKING && settled => ("owned", Some(name(number + 1))),
            number if number < REVOKING => ("revoking", Some(name(number))),
            number if number < REVOKING + VACANT => ("vacant", None),
            number => ("owned", Some(name(number % NODES))),
        };
        json!({"task_list": format!("work/list-{list}"), "partition": partition, "state": state, "node_id": owner, "term": 12})
    };
    axum::Json((0..PARTITIONS).map(row).collect::<Vec<_>>()).into_response()
}

/// A list that is empty, and a stream that tells a hundred thousand at once and then nothing: until what moved has
/// arrived, which it says in one more.
async fn events(State(crowd): State<Arc<Crowd>>, headers: HeaderMap) -> Response {
    let streams = headers.get(header::ACCEPT).is_some_and(|kind| kind == "text/event-stream");
    if !streams {
        return axum::Json(json!([])).into_response();
    }
    let known = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(0);
    let burst = (known + 1..=EVENTS).map(line).collect::<String>();
    let last = stream::unfold(Some(crowd), |crowd| async move {
        let crowd = crowd?;
        while !crowd.settled.load(Ordering::SeqCst) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Some((told(EVENTS + 1, "plan_published"), None))
    });
    let silence = stream::pending::<String>();
    let all = stream::iter([burst]).chain(last).chain(silence).map(Ok::<_, std::convert::Infallible>);
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(all)).into_response()
}

/// Leaders come and go at first; then only nodes are heard of, which changes nothing about partitions.
fn line(id: usize) -> String {
    let kind = match id {
        id if id > 400 => "in_jeopardy",
        id if id % 2 == 1 => "leader_elected",
        _ => "leader_lost",
    };
    told(id, kind)
}

fn told(id: usize, kind: &str) -> String {
    let event = json!({"id": id, "time": NOW, "event": kind, "election": "coordinator", "node": name(id % NODES),
        "term": id.div_ceil(2), "data": {"reason": "lapsed"}});
    format!("id: {id}\nevent: {kind}\ndata: {event}\n\n")
}
