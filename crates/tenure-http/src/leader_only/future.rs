//! A request on its way through.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Response;
use pin_project_lite::pin_project;
use tenure::Pass;

use super::answer::{self, Problem};
use super::body::{Body, Foreign};
use super::headers::{self, TENURE_LEADER, TENURE_TERM};
use super::layer::Guard;

type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pin_project! {
    /// The response of [`LeaderOnly`](super::LeaderOnly).
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = Projection]
    enum State<F> {
        /// Not for the leader only.
        Free { #[pin] future: F, guard: Arc<Guard> },
        /// Under a term of this node.
        Leading { #[pin] future: F, guard: Arc<Guard>, pass: Pass, cut_off: Option<Pending<()>> },
        Forwarded { forwarding: Pending<Response<Foreign>> },
        Answered { response: Option<Response<Foreign>> },
    }
}

impl<F> ResponseFuture<F> {
    pub(super) const fn free(future: F, guard: Arc<Guard>) -> Self {
        Self { state: State::Free { future, guard } }
    }

    pub(super) const fn leading(future: F, guard: Arc<Guard>, pass: Pass) -> Self {
        Self { state: State::Leading { future, guard, pass, cut_off: None } }
    }

    pub(super) const fn forwarded(forwarding: Pending<Response<Foreign>>) -> Self {
        Self { state: State::Forwarded { forwarding } }
    }

    pub(super) const fn answered(response: Response<Foreign>) -> Self {
        Self { state: State::Answered { response: Some(response) } }
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<Body<R>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let other = |response: Response<Foreign>| Ok(response.map(Body::other));
        match self.project().state.project() {
            Projection::Free { future, guard } => {
                let mut response = ready!(future.poll(context))?;
                if let Some(leader) = guard.gate.leader() {
                    let headers = response.headers_mut();
                    headers.insert(TENURE_TERM, headers::term(leader.term));
                    headers.insert(TENURE_LEADER, headers::node(&leader.node));
                }
                Poll::Ready(Ok(response.map(Body::inner)))
            }
            Projection::Leading { future, guard, pass, cut_off } => {
                if let Poll::Ready(response) = future.poll(context) {
                    let mut response = response?;
                    let headers = response.headers_mut();
                    headers.insert(TENURE_TERM, headers::term(pass.term()));
                    headers.insert(TENURE_LEADER, guard.name.clone());
                    return Poll::Ready(Ok(response.map(Body::inner)));
                }
                // Most services answer at once, so this is made only when it is waited for.
                let cut_off = cut_off.get_or_insert_with(|| {
                    let pass = pass.clone();
                    Box::pin(async move { pass.cut_off().await })
                });
                ready!(cut_off.as_mut().poll(context));
                // Whoever polls us drops the service's future, and the pass with it.
                Poll::Ready(other(answer::problem(Problem::CutOff, &guard.gate, false)))
            }
            Projection::Forwarded { forwarding } => {
                Poll::Ready(other(ready!(forwarding.as_mut().poll(context))))
            }
            Projection::Answered { response } => {
                let response = response.take().expect("a future is not polled after it was ready");
                Poll::Ready(other(response))
            }
        }
    }
}
