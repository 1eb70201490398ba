//! A program beside this node, in any language, behind the same layer: the reverse proxy.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use tenure::{Gate, Pass};
use tower_service::Service;

use super::answer::{self, Problem};
use super::body::{BoxError, Foreign};
use super::forward::{address, received};
use super::headers::{self, TENURE_FORWARDED_BY, TENURE_LEADER, TENURE_TERM};
use super::origin::Origin;
use super::tunnel::Upgrade;
use super::wire::{Failure, Limits, Wire};

/// Passes requests on to a program, and its answers back. Put it inside a
/// [`LeaderOnlyLayer`](super::LeaderOnlyLayer) with [`Rules`](super::Rules).
///
/// The program reads `Tenure-Term` where a request was let through as the leader's: the number to store
/// beside what it writes. Without that header the request is one that every node may answer. What a client
/// sends under that name does not get through.
#[derive(Clone, Debug)]
pub struct Upstream {
    to: Arc<Origin>,
    wire: Arc<Wire>,
    gate: Gate,
}

impl Upstream {
    /// The program at this address.
    #[must_use]
    pub fn new(to: Origin, limits: Limits, gate: Gate) -> Self {
        Self { to: Arc::new(to), wire: Wire::new(limits, None), gate }
    }

    /// Passes on what only the leader may do. It goes on when the client hangs up: the program does not know
    /// of that, and as long as it may be at work, the pass is held.
    async fn relay_under(self, pass: Pass, request: Request<Foreign>) -> Response<Foreign> {
        let gate = self.gate.clone();
        let lost = answer::problem(Problem::Broken, &gate, false);
        let relaying = tokio::spawn(async move {
            let relaying = self.relay(Some(pass.clone()), request);
            tokio::select! {
                response = relaying => response,
                () = pass.cut_off() => answer::problem(Problem::CutOff, &gate, false),
            }
        });
        relaying.await.unwrap_or(lost)
    }

    async fn relay(self, pass: Option<Pass>, mut request: Request<Foreign>) -> Response<Foreign> {
        address(&mut request);
        let upgrade = Upgrade::take(&mut request);
        let own = request.headers_mut();
        for name in [TENURE_TERM, TENURE_LEADER, TENURE_FORWARDED_BY] {
            own.remove(name);
        }
        if let Some(pass) = &pass {
            own.insert(TENURE_TERM, headers::term(pass.term()));
        }
        // Between the layer's check and here, a connection may have been waited for.
        let may_go = || pass.as_ref().is_none_or(|pass| pass.check().is_ok());
        let problem = match self.wire.send(&self.to, request, may_go).await {
            Ok(response) => return received(response, upgrade, pass),
            Err(Failure::Unsent(_)) => Problem::UpstreamUnreachable,
            Err(Failure::TooLate) => Problem::NotLeader,
            Err(Failure::Broken) => Problem::Broken,
            Err(Failure::TimedOut) => Problem::TimedOut,
        };
        answer::problem(problem, &self.gate, false)
    }
}

impl<B> Service<Request<B>> for Upstream
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Foreign>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let (upstream, pass) = (self.clone(), request.extensions_mut().remove::<Pass>());
        Box::pin(async move {
            Ok(match pass {
                Some(pass) => upstream.relay_under(pass, request).await,
                None => upstream.relay(None, request).await,
            })
        })
    }
}
