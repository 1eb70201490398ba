//! The body of a response: the service's own, or ours.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use pin_project_lite::pin_project;

/// Whatever went wrong.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A body that came from elsewhere.
pub(crate) type Foreign = UnsyncBoxBody<Bytes, BoxError>;

pin_project! {
    /// The body of a response: the service's own, or what was answered in its place.
    #[derive(Debug)]
    pub struct Body<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = Projection]
    #[derive(Debug)]
    enum Kind<B> {
        Inner { #[pin] body: B },
        Other { #[pin] body: Foreign },
    }
}

impl<B> Body<B> {
    /// The service's own.
    pub(super) const fn inner(body: B) -> Self {
        Self { kind: Kind::Inner { body } }
    }

    /// What we answer ourselves, or what another node has answered.
    pub(super) const fn other(body: Foreign) -> Self {
        Self { kind: Kind::Other { body } }
    }
}

/// Text as a body.
pub(crate) fn text(text: String) -> Foreign {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
}

impl<B> http_body::Body for Body<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().kind.project() {
            Projection::Inner { body } => {
                Poll::Ready(ready!(body.poll_frame(context)).map(|frame| frame.map_err(Into::into)))
            }
            Projection::Other { body } => body.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Inner { body } => body.is_end_stream(),
            Kind::Other { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Inner { body } => body.size_hint(),
            Kind::Other { body } => body.size_hint(),
        }
    }
}
