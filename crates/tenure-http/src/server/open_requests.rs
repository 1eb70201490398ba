//! How many requests are open on a connection. One without any is closed after a while: a client of HTTP/2 that
//! answers pings moves bytes, so it is not idle, and still needs nothing.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::sync::watch;

/// Counts the requests of one connection. Clones count the same.
#[derive(Clone, Debug)]
pub(super) struct OpenRequests(watch::Sender<usize>);

impl Default for OpenRequests {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct OpenRequest(watch::Sender<usize>);

impl OpenRequests {
    pub(super) fn begin(&self) -> OpenRequest {
        self.0.send_modify(|open| *open += 1);
        OpenRequest(self.0.clone())
    }

    /// Returns once there was none for as long as this.
    pub(super) async fn none_for(&self, limit: Duration) {
        let mut open = self.0.subscribe();
        // It cannot fail: the sender is ours.
        while open.wait_for(|open| *open == 0).await.is_ok() {
            if tokio::time::timeout(limit, open.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

pin_project! {
    /// The body of a response. The request is open until all of it was sent.
    pub(super) struct CountedBody<B> {
        #[pin]
        body: B,
        request: OpenRequest,
    }
}

impl<B> CountedBody<B> {
    pub(super) const fn new(body: B, request: OpenRequest) -> Self {
        Self { body, request }
    }
}

impl<B: http_body::Body> http_body::Body for CountedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_connection_without_requests_is_over_after_a_while() {
        const LIMIT: Duration = Duration::from_secs(60);
        let (requests, begin) = (OpenRequests::default(), Instant::now());
        let counting = requests.clone();
        let client = async move {
            tokio::time::sleep(LIMIT / 2).await;
            let stream = counting.begin();
            let other = counting.begin();
            tokio::time::sleep(LIMIT * 5).await;
            drop(other);
            tokio::time::sleep(LIMIT * 5).await;
            drop(stream);
        };
        tokio::join!(client, requests.none_for(LIMIT));
        assert_eq!(begin.elapsed().as_secs(), (LIMIT / 2 + LIMIT * 11).as_secs());
    }
}
