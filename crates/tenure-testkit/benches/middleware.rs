//! Requests per second of a trivial axum handler, behind the leader-only layer and without it.

mod common;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Request, Response};
use axum::routing::{Route, post};
use axum::{BoxError, Router, ServiceExt};
use common::samples::human;
use common::{Bench, Outcome};
use futures_util::future::MapOk;
use futures_util::{FutureExt, TryFutureExt};
use tenure::Node;
use tenure_http::leader_only::LeaderOnlyLayer;
use tenure_store::clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_layer::{Layer, layer_fn};
use tower_service::Service;

/// What the layer must leave of the throughput.
const TARGET: f64 = 0.97;
const CONNECTIONS: usize = 16;
const ROUND: Duration = Duration::from_millis(250);
const REQUEST: &[u8] = b"POST /orders HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n";

fn main() -> ExitCode {
    common::run("middleware", measure, common::no_part)
}

fn measure(bench: &Bench) -> Outcome<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(compare(bench))
}

async fn compare(bench: &Bench) -> Outcome<()> {
    let store = tenure::connect("memory:").await?;
    let node = Node::builder("bench").ttl(Duration::from_secs(60)).start(store).await?;
    let election = node.election("orders")?;
    let leadership = election.elected().await?;
    let app = || Router::new().route("/orders", post(async || "done"));
    let layer = LeaderOnlyLayer::new(election.gate());
    let (with, without) = alone(&layer);
    bench.tell(
        "leader-only layer: added to a request",
        &human(with.saturating_sub(without)),
        &format!("a service that does nothing takes {}", human(without)),
    )?;
    let bare = serve(app()).await?;
    let ratio = ratio(bench, bare, "around the service", serve(Boxed(layer.layer(app()))).await?).await?;
    let verdict = if ratio >= TARGET { "met" } else { "MISSED" };
    let target = format!("≥ {TARGET}");
    bench.conclude(
        "leader-only layer: requests per second ÷ without it",
        &format!("{ratio:.3}"),
        &target,
        verdict,
    )?;
    // axum boxes its routes anew for every layer, whatever that does.
    let idle = serve(app().layer(layer_fn(|route: Route| route))).await?;
    let idle = self::ratio(bench, bare, "a layer on axum's routes that does nothing", idle).await?;
    bench.tell("on axum's routes, one that does nothing", &format!("{idle:.3}"), "–")?;
    let routes = serve(app().layer(layer)).await?;
    let routes = self::ratio(bench, bare, "on axum's routes", routes).await?;
    bench.tell("on axum's routes", &format!("{routes:.3}"), &target)?;
    leadership.check()?;
    Ok(())
}

/// Requests per second behind something ÷ without it.
async fn ratio(bench: &Bench, bare: SocketAddr, what: &str, layered: SocketAddr) -> Outcome<f64> {
    let rounds = if bench.quick { 8 } else { 80 };
    load(bare).await?; // warms up
    load(layered).await?;
    // Of rounds next to each other, and in both orders: a machine has good and bad seconds.
    let (mut ratios, mut bares, mut layers) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (first, second) = if round % 2 == 0 { (bare, layered) } else { (layered, bare) };
        let (one, other) = (load(first).await?, load(second).await?);
        let (plain, behind) = if round % 2 == 0 { (one, other) } else { (other, one) };
        ratios.push(behind / plain);
        bares.push(plain);
        layers.push(behind);
    }
    println!(
        "{what}: requests per second, {CONNECTIONS} connections, medians of {rounds} rounds of {ROUND:?}"
    );
    println!("  without {:>9.0}", median(&mut bares));
    println!("  behind  {:>9.0}", median(&mut layers));
    Ok(median(&mut ratios))
}

/// What a call takes without a network: with the layer, and without. The shortest of many rounds.
fn alone(layer: &LeaderOnlyLayer) -> (Duration, Duration) {
    const CALLS: u32 = 10_000;
    let (mut with, mut without) = (Duration::MAX, Duration::MAX);
    for _ in 0..50 {
        let (mut bare, mut layered) = (Nothing, layer.layer(Nothing));
        let time = |call: &mut dyn FnMut()| {
            let start = clock::now();
            (0..CALLS).for_each(|_| call());
            clock::now().since(start) / CALLS
        };
        without = without.min(time(&mut || drop(black_box(bare.call(Request::default()).now_or_never()))));
        with = with.min(time(&mut || drop(black_box(layered.call(Request::default()).now_or_never()))));
    }
    (with, without)
}

/// A service that does nothing.
#[derive(Clone)]
struct Nothing;

impl Service<Request<Body>> for Nothing {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::default()))
    }
}

/// A service with axum's body, which its server wants.
#[derive(Clone)]
struct Boxed<S>(S);

impl<S, B> Service<Request<Body>> for Boxed<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = MapOk<S::Future, fn(Response<B>) -> Response<Body>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.call(request).map_ok(|response| response.map(Body::new))
    }
}

async fn serve<S>(app: S) -> Outcome<SocketAddr>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>,
    S: Clone + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app.into_make_service()).await });
    Ok(at)
}

/// Requests per second of one round.
async fn load(at: SocketAddr) -> Outcome<f64> {
    let (answered, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let (answered, over) = (Arc::clone(&answered), Arc::clone(&over));
        let mut stream = TcpStream::connect(at).await?;
        stream.set_nodelay(true)?;
        clients.push(tokio::spawn(async move {
            let mut buffer = [0; 1024];
            while !over.load(Ordering::Relaxed) {
                stream.write_all(REQUEST).await?;
                let read = stream.read(&mut buffer).await?;
                if !buffer[..read].starts_with(b"HTTP/1.1 200") || !buffer[..read].ends_with(b"done") {
                    return Err(std::io::Error::other("not the answer that was expected"));
                }
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }));
    }
    let start = clock::now();
    tokio::time::sleep(ROUND).await;
    let (count, took) = (answered.load(Ordering::Relaxed), clock::now().since(start));
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await??;
    }
    Ok(count as f64 / took.as_secs_f64())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
