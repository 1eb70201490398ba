//! The layer, and the service that it makes.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::HeaderValue;
use http::{Request, Response};
use http_body_util::BodyExt;
use tenure::{Gate, KnownLeader, NotLeader};
use tower_layer::Layer;
use tower_service::Service;

use super::answer::{self, Problem};
use super::body::{Body, BoxError, Foreign};
use super::forward::Forwarder;
use super::future::ResponseFuture;
use super::headers;
use super::origin::Origin;
use super::rules::Rules;

/// What becomes of a leader-only request on a node that does not lead.
#[derive(Clone, Debug, Default)]
pub enum Mode {
    /// 503 with the leader's name and `Retry-After`: what load balancers need to try the next node.
    #[default]
    Refuse,
    /// 307 to the leader's address, with path and query. The client must be able to reach it.
    Redirect,
    /// Passed on to the leader, and its answer passed back.
    Forward(Forwarder),
}

/// Lets requests through where and while this node leads.
///
/// ```no_run
/// # use axum::{Router, routing::post};
/// # use tenure_http::leader_only::LeaderOnlyLayer;
/// # fn app(election: &tenure::Election) -> Router {
/// Router::new()
///     .route("/orders", post(async || "done"))
///     .route_layer(LeaderOnlyLayer::new(election.gate()))
/// # }
/// ```
///
/// Something must stand for the election: [`Election::lead`](tenure::Election::lead) with work that
/// waits for its end, say. In axum, put the layer on the outermost router: inside `nest` the path that a
/// redirect keeps is a part of the whole.
#[derive(Clone, Debug)]
pub struct LeaderOnlyLayer {
    guard: Arc<Guard>,
}

/// What all requests share.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub gate: Gate,
    mode: Mode,
    rules: Rules,
    pub name: HeaderValue,
}

impl LeaderOnlyLayer {
    /// Lets every request through on the leader, and refuses it with 503 elsewhere.
    #[must_use]
    pub fn new(gate: Gate) -> Self {
        let name = headers::node(gate.node());
        Self { guard: Arc::new(Guard { gate, mode: Mode::Refuse, rules: Rules::everything(), name }) }
    }

    /// What to do elsewhere.
    #[must_use]
    pub fn elsewhere(self, mode: Mode) -> Self {
        Self { guard: Arc::new(Guard { mode, ..Guard::clone(&self.guard) }) }
    }

    /// Which requests are for the leader only. The others pass everywhere.
    #[must_use]
    pub fn only(self, rules: Rules) -> Self {
        Self { guard: Arc::new(Guard { rules, ..Guard::clone(&self.guard) }) }
    }
}

impl<S> Layer<S> for LeaderOnlyLayer {
    type Service = LeaderOnly<S>;

    fn layer(&self, inner: S) -> LeaderOnly<S> {
        LeaderOnly { inner, guard: Arc::clone(&self.guard) }
    }
}

/// A service whose requests are let through where and while this node leads.
#[derive(Clone, Debug)]
pub struct LeaderOnly<S> {
    inner: S,
    guard: Arc<Guard>,
}

impl<S, B, R> Service<Request<B>> for LeaderOnly<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    /// The check and the call are one: nothing is waited for between them.
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let guard = Arc::clone(&self.guard);
        if !guard.rules.apply_to(&request) {
            return ResponseFuture::free(self.inner.call(request), guard);
        }
        match guard.gate.enter() {
            Ok(pass) => {
                let extensions = request.extensions_mut();
                extensions.insert(pass.term());
                extensions.insert(pass.clone());
                ResponseFuture::leading(self.inner.call(request), guard, pass)
            }
            Err(lost) => elsewhere(guard, request, lost),
        }
    }
}

/// What becomes of a request that is not let through.
fn elsewhere<F, B>(guard: Arc<Guard>, request: Request<B>, lost: NotLeader) -> ResponseFuture<F>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let grpc = answer::is_grpc(request.headers());
    let refuse = |problem| answer::problem(problem, &guard.gate, grpc);
    // What is known may lag behind: a node that has just lost its term does not send anybody to itself.
    let leader = guard.gate.leader().filter(|leader| leader.node != *guard.gate.node());
    let Some(leader) = leader else {
        tracing::debug!(target: "tenure", %lost, "a request was refused: nobody leads");
        return ResponseFuture::answered(refuse(Problem::NoLeader));
    };
    match &guard.mode {
        Mode::Refuse => ResponseFuture::answered(refuse(Problem::NotLeader)),
        Mode::Redirect | Mode::Forward(_) if grpc => ResponseFuture::answered(refuse(Problem::CannotForward)),
        // Two nodes with old news could send a client from one to the other for as long as they are cut off.
        Mode::Redirect if !guard.gate.is_in_touch() => ResponseFuture::answered(refuse(Problem::NotLeader)),
        Mode::Redirect => ResponseFuture::answered(match origin(&leader) {
            Some(origin) => answer::redirect(&origin.with_path_of(request.uri()), &guard.gate, &leader),
            None => refuse(Problem::NoAddress),
        }),
        Mode::Forward(forwarder) => {
            let request = request.map(|body| body.map_err(Into::into).boxed_unsync() as Foreign);
            let forwarding = forwarder.clone().forward(guard.gate.clone(), leader, request);
            ResponseFuture::forwarded(Box::pin(forwarding))
        }
    }
}

/// The leader's address, if it is one that may be used.
pub(super) fn origin(leader: &KnownLeader) -> Option<Origin> {
    let address = leader.address.as_deref()?;
    address
        .parse()
        .inspect_err(|error| {
            tracing::warn!(
                target: "tenure", leader = %leader.node, %error, "the leader's address cannot be used",
            );
        })
        .ok()
}
