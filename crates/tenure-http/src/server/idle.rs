//! A connection on which nothing moves is closed.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream that fails once no byte has moved either way for a while.
pub(super) struct Idle<T> {
    stream: T,
    limit: Duration,
    moved: Instant,
    /// Set when it is first waited for, and looked at again only when it has fired: to read or write
    /// costs no timer.
    timer: Pin<Box<Sleep>>,
}

impl<T> Idle<T> {
    pub(super) fn new(stream: T, limit: Duration) -> Self {
        Self { stream, limit, moved: Instant::now(), timer: Box::pin(tokio::time::sleep(limit)) }
    }

    /// What came of an attempt to move bytes.
    fn judge<R>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if outcome.is_ready() {
            self.moved = Instant::now();
            return outcome;
        }
        while self.timer.as_mut().poll(context).is_ready() {
            let end = self.moved + self.limit;
            if end <= Instant::now() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.timer.as_mut().reset(end);
        }
        Poll::Pending
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Idle<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.judge(context, read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Idle<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_connection_on_which_nothing_moves_is_closed() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut idle = Idle::new(ours, LIMIT);
        let speaks = async {
            for _ in 0..5 {
                tokio::time::sleep(LIMIT * 9 / 10).await;
                theirs.write_u8(7).await.unwrap();
            }
        };
        let hears = async {
            for _ in 0..5 {
                assert_eq!(idle.read_u8().await.unwrap(), 7);
            }
        };
        tokio::join!(speaks, hears);
        let quiet = Instant::now();
        assert_eq!(idle.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(quiet.elapsed().as_secs(), LIMIT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_does_not_read_what_is_sent_is_not_waited_for() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let mut idle = Idle::new(ours, LIMIT);
        let error = idle.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
